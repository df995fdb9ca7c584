"""From finished cells to tables, verdicts, figures and pages."""
