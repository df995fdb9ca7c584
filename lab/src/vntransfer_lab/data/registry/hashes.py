"""Hashes that are known to be right, by folder and file name. None is ever guessed."""
# ruff: noqa: E501  a hash stays in one piece

#: of the official files
MD5 = {
    "mnist/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "mnist/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "mnist/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "mnist/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "fashion_mnist/train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "fashion_mnist/train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "fashion_mnist/t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    "omniglot/images_background.zip": "68d2efa1b9178cc56df9314c21c6e718",
}

#: of the content of official .gz files, whose wrapping differs from mirror to mirror
CONTENT_MD5 = {"mnist/train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb"}

#: of the compact forms
SHA256 = {
    "amazon/blitzer_7domains_thresholded_stars.tsv.gz": "0b27d9125e3f069f1512fa657091e9af1a3fecbc6e1e1ffd95af6c516674ce1a",
    "amazon/blitzer_raw_stars_4domains.jsonl.gz": "186fb3fdc10237d9abab526c4afe7e10650758e68eb3ca1bac335a5baa4741ea",
    "ct_slices/ct_slices_partial.npz": "3aca3a1cdd81ce7738263375efcddb8d513054b42282586968dc2200a9ce6783",
    "fashion_mnist/t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    "fashion_mnist/train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "fashion_mnist/train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "landmine/LandmineData.mat": "2163ab20a80e33a8b65593c48cf283c540599dcb291105e63fa4af2ce24c2bea",
    "mnist/t10k-images-idx3-ubyte.gz": "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
    "mnist/t10k-labels-idx1-ubyte.gz": "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
    "mnist/train-images-idx3-ubyte.gz": "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
    "mnist/train-labels-idx1-ubyte.gz": "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
    "notmnist/notmnist_small.npz": "a91ab1624eb2fc0737f0c6b4fd8de0354061c201cbeef90f14ef4ab2f8b184d5",
    "omniglot/omniglot_images_background.npz": "5fb1ce92ffc3d25b76c887726164899652e9481d4e48fff3850a96bfe54e0686",
    "regression/2dplanes.npz": "cfd04379e68bb12335aafdcd8646ae63ec56c67e57962e182e336efed6504d4b",
    "regression/bank8FM.npz": "ac676cd9349761ff6611471c7017b81e6b061f6acb90d59aa35119a305088992",
    "regression/cal_housing.npz": "6ad6119e929cf9c8b4fef318a1a047fad8251174c35256f5eba3fd28b72517f6",
    "regression/puma8NH.npz": "f3c86c33bc15c5ad9fc0459598bf984837f0ff09782d891de7b46fb2330d3da4",
    "trancos/trancos_320x240.npz": "2d742be86f7ea24ae0e6c39803e6d133b53d8e6539a551de810ef34eadefaec9",
    "uci_extra/bike.csv.gz": "411f76ae426c0e348a2629dcf6b3b29102c7db465eae780a3454c39db1dfac4f",
    "uci_extra/parkinsons.csv.gz": "d20ffd9c9e5053a03fff0b770e7b0e076bf856a34538198303c897b6cc6addde",
    "uci_extra/pol.csv.gz": "1c16126352954571e78f52d5a9d1b947a38655885d7cadd9407a4c9615fe4e04",
    "uci_extra/protein.csv.gz": "f709d0107c3ee90ab019b9e5d77fc2ae182158958cb70b1903236a51334fd01b",
    "uci_extra/pumadyn32nm.csv.gz": "10d1698944e0f6e586f2781e4b62c17c05174d4c6cdb6fb824a3e5a1b3630ae4",
    "yearpredictionmsd/yearpred_subset.npz": "8f01d24c32d7ba4ea830e8c0421ecc198cc661f3a5b174807988d265986f343d",
}
