import { expect, test } from 'vitest'
import { linksOf } from '../../../scripts/bench/page/page-clients.ts'

test('the addresses of a screen are those that a browser reads', () => {
  const html = `<head><link rel="icon" href="../static/abc/icon.svg" /><link rel="stylesheet" href="../static/abc/page.css" />
    <script type="module" src="../static/abc/page.js"></script></head>
    <body data-root="../" data-live-path="api/v1/now" data-live-stream="api/v1/now/stream"><a href="../messages">Messages</a></body>`
  expect(linksOf(html)).toEqual({
    files: ['../static/abc/icon.svg', '../static/abc/page.css', '../static/abc/page.js'],
    live: 'api/v1/now',
    stream: 'api/v1/now/stream',
  })
  expect(linksOf('<body data-root="">')).toEqual({ files: [], live: null, stream: null })
})
