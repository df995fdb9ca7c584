// Search runs in a Worker, which browsers refuse to pages read from disk. There, and only there, a
// hidden frame takes its place: the same script, the same messages, no network.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      const script = this.inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.waiting.forEach((data) => this.deliver(data));
        this.waiting = null;
      };
      this.inside.document.body.append(script);
    }
    deliver(data) {
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }
    terminate() {
      this.inside.frameElement?.remove();
    }
  };
}
