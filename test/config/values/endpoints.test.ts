import { expect, test } from 'vitest'
import { parseListen } from '../../../src/config/values/endpoints.ts'

test.each([
  ['127.0.0.1:2525', '127.0.0.1', 2525],
  ['[::1]:25', '::1', 25],
  ['*:25', '::', 25],
  [':25', '::', 25],
  ['25', '::', 25],
  ['relay.example:0', 'relay.example', 0],
])('%s', (text, address, port) => expect(parseListen(text, 'smtpd_listen')).toEqual({ address, port }))

test.each(['', 'a', 'a:', 'a:65536', '::1:25', '[::1]', 'a:25x'])('%j is refused', (text) => {
  expect(() => parseListen(text, 'smtpd_listen')).toThrow(/^smtpd_listen: expected an address and a port/)
})
