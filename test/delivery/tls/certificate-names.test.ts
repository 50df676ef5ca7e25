import { expect, test } from 'vitest'
import { namesHost, namesNone } from '../../../src/delivery/tls/certificate-names.ts'

const certificate = { subjectaltname: 'DNS:mx.example.com, DNS:*.example.net, IP Address:192.0.2.1, DNS:m*.example.org' }

test.each([
  ['mx.example.com', true],
  ['a.example.net', true],
  ['a.b.example.net', false],
  ['example.net', false],
  ['mx.example.org', false],
  ['192.0.2.1', false],
  ['net', false],
])('the certificate names %s: %s', (host, expected) => expect(namesHost(certificate, host)).toBe(expected))

test('a certificate without alternative names has no name', () => {
  expect(namesNone({}, ['a.example', 'b.example'])?.message).toBe('the certificate does not name a.example or b.example')
})
