/** Mail as tests read it: charsets, encodings, attachments, codes and links. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { codesIn, linksIn, textOfHtml } from '../../../src/lab/mail/codes-and-links.ts'
import { decodedField } from '../../../src/mail/mime/encoded-text.ts'
import { parseMail, partContent } from '../../../src/mail/mime/parsed-mail.ts'

const PICTURE = Buffer.from([137, 80, 78, 71])

const MAIL = Buffer.from(
  [
    'From: =?utf-8?q?J=C3=B6rg?= <app@us.example>',
    'Subject: =?ISO-2022-JP?B?GyRCRnxLXBsoQg==?= =?utf-8?Q?=E2=82?=',
    ' =?utf-8?Q?=AC_5?=',
    'Content-Type: multipart/mixed; boundary="outer"',
    '',
    '--outer',
    'Content-Type: multipart/alternative; boundary="inner"',
    '',
    '--inner',
    'Content-Type: text/plain; charset=iso-8859-1',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    'Gr=FC=DFe, your code is 4711 =',
    'today.',
    '--inner',
    'Content-Type: text/html; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from('<p>Grüße <a href="https://x.example/?a=1&amp;b=2">confirm</a></p>').toString('base64'),
    '--inner--',
    '--outer',
    "Content-Disposition: attachment; filename*=UTF-8''caf%C3%A9.png",
    'Content-Type: image/png',
    'Content-ID: <pic@x>',
    'Content-Transfer-Encoding: base64',
    '',
    PICTURE.toString('base64'),
    '--outer--',
    '',
  ].join('\r\n'),
)

test('html, text, an attachment and encoded words in several charsets', () => {
  expect(parseMail(MAIL)).toEqual({
    headers: [
      { name: 'from', value: 'Jörg <app@us.example>' },
      { name: 'subject', value: '日本€ 5' },
      { name: 'content-type', value: 'multipart/mixed; boundary="outer"' },
    ],
    subject: '日本€ 5',
    text: 'Grüße, your code is 4711 today.',
    html: '<p>Grüße <a href="https://x.example/?a=1&amp;b=2">confirm</a></p>',
    attachments: [
      { name: 'café.png', type: 'image/png', size: 4, cid: 'pic@x', sha256: createHash('sha256').update(PICTURE).digest('hex'), part: 3 },
    ],
  })
  expect(partContent(MAIL, 3)).toEqual(PICTURE)
  expect(partContent(MAIL, 4)).toBeNull()
})

test('any octets are parsed, and fields without encoded words stay as they are', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
      parseMail(octets)
    }),
    { numRuns: 40 },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 50 }), (text) => {
      fc.pre(!text.includes('=?'))
      expect(decodedField(text)).toBe(text)
    }),
    { numRuns: 40 },
  )
})

test.each([
  ['Your code is 4711.', ['4711']],
  ['Use A1B2C3 or 4711', ['A1B2C3', '4711']],
  ['code: 123456', ['123456']],
  ['4711, again 4711', ['4711']],
  ['see https://x.example/confirm/123456?token=abc123 now', []],
  ['on 2026-01-31, 31.01.2026, 1/31/2026, 31 January 2026 and January 31, 2026', []],
  ['at 12:30:45 and 08:15', []],
  ['pay $1234, 1234.50 EUR, €1500 or 1500 %', []],
  ['call +49 30 1234567, (030) 1234567 or 030-1234567', []],
  ['write to user1234@x.example', []],
  ['© 2026 Example', []],
  ['12345678901 and abcdefgh and 123', []],
])('codes in %j', (text, codes) => {
  expect(codesIn(text)).toEqual(codes)
})

test('links are in order, with entities decoded, and once', () => {
  const html =
    '<head><title>1</title></head><a class=x href="https://x.example/?a=1&amp;b=&#50;">Confirm&nbsp;<b>now</b></a><a href=\'/relative\'>r</a><a>none</a>'
  const text = 'Confirm: https://x.example/?a=1&b=2. Or (https://y.example/z).'
  expect(linksIn({ html, text })).toEqual([
    { url: 'https://x.example/?a=1&b=2', text: 'Confirm now' },
    { url: '/relative', text: 'r' },
    { url: 'https://y.example/z', text: 'https://y.example/z' },
  ])
  expect(textOfHtml('<style>p{}</style><p>4711</p><script>1234</script>').trim()).toBe('4711')
})

test('hostile HTML and text take linear time', () => {
  const began = performance.now()
  for (const piece of ['<a href=x>', '<script>', '<', 'aaaa', '1,', '+1 ', '@', 'https://', '&#1;', '<head']) {
    const text = piece.repeat(20_000)
    linksIn({ html: text, text })
    codesIn(text)
    textOfHtml(text)
  }
  expect(performance.now() - began).toBeLessThan(60_000)
})
