"""What whoever keeps a wiki works with: new pages, refused questions, and what refers to a page and changed it."""
