"""Pictures and code of the pages: SVG and HTML in which every text of others is escaped."""
