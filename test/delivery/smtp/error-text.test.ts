import { expect, test } from 'vitest'
import { systemErrorText, tlsErrorText } from '../../../src/delivery/smtp/error-text.ts'

const withCode = (code: string) => Object.assign(new Error('connect failed'), { code })

test.each([
  [withCode('ECONNREFUSED'), 'Connection refused'],
  [withCode('EHOSTUNREACH'), 'No route to host'],
  [withCode('EOTHER'), 'connect failed'],
  [new Error('plain'), 'plain'],
  ['text', 'text'],
])('a system error has the text of strerror(3): %s', (error, text) => expect(systemErrorText(error)).toBe(text))

test('a TLS error has the reason of OpenSSL alone', () => {
  const message = '80E2:error:0A000086:SSL routines:tls_process:certificate verify failed:ssl/statem.c:1889:'
  expect(tlsErrorText(Object.assign(new Error(message), { library: 'SSL routines', reason: 'certificate verify failed' }))).toBe(
    'certificate verify failed',
  )
  expect(tlsErrorText(new Error('self-signed certificate'))).toBe('self-signed certificate')
})
