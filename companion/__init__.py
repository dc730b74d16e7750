"""What serves the pages, the course and the site: `lib` knows nothing of it."""
