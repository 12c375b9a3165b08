"""HTML pages: log, damage and encoding reports, and the protocol site. Data in, one HTML text per page out.

    log_report       render_report: a page about the topics of a log directory
    damage_report    render_damage: the findings of a verification
    encoding_report  render_encodings: integer encodings (KIP-625) and their cost
    site             render_site: message definitions as a static site
    document, charts, markup, html_page, style.css   what the pages are built from
    quantities, escaping                             sizes, counts and untrusted text as readable text

Nothing here prints, reads files or imports a command line library.
"""
