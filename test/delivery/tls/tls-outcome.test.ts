import { expect, test } from 'vitest'
import type { SessionFailure } from '../../../src/delivery/transcript.ts'
import type { TlsConnection } from '../../../src/delivery/tls/tls-connection.ts'
import { tlsFacts } from '../../../src/delivery/tls/tls-outcome.ts'

const may = { stated: { level: 'may', policy: 'none' }, required: false } as const
const secure = { stated: { level: 'secure', policy: 'config' }, required: true } as const
const reply = { code: 454, text: 'not now', raw: '454 not now' }
const connection = (trust: TlsConnection['trust']): TlsConnection => ({
  trust,
  reused: false,
  protocol: 'TLSv1.3',
  cipher: 'TLS_AES_128_GCM_SHA256',
  bits: 128,
})

test.each([
  ['Untrusted', 'encrypted'],
  ['Trusted', 'trusted'],
  ['Verified', 'verified'],
] as const)('with TLS, %s: %s', (trust, state) => {
  expect(tlsFacts({ terms: secure, connection: connection(trust) })).toEqual({
    level: 'secure',
    policy: 'config',
    state,
    protocol: 'TLSv1.3',
    cipher: 'TLS_AES_128_GCM_SHA256',
  })
})

test('without TLS and without a failure, the session is in clear', () => {
  expect(tlsFacts({ terms: may })).toEqual({ level: 'may', policy: 'none', state: 'clear' })
})

test('a failure after the handshake leaves the facts of the connection', () => {
  const failure: SessionFailure = { kind: 'lost', stage: 'ehlo' }
  expect(tlsFacts({ terms: may, connection: connection('Trusted'), failure })).toMatchObject({ state: 'trusted', protocol: 'TLSv1.3' })
})

const FAILURES: readonly [failure: SessionFailure, may: string, secure: string, reason?: string][] = [
  [{ kind: 'unreachable', why: 'Connection refused' }, 'undecided', 'undecided'],
  [{ kind: 'refused', stage: 'greeting', reply }, 'undecided', 'undecided'],
  [{ kind: 'refused', stage: 'ehlo', reply }, 'undecided', 'undecided'],
  [{ kind: 'refused', stage: 'starttls', reply }, 'undecided', 'not-offered', '454 not now'],
  [{ kind: 'refused', stage: 'auth', reply }, 'clear', 'clear'],
  [{ kind: 'lost', stage: 'starttls' }, 'undecided', 'undecided'],
  [{ kind: 'timeout', stage: 'starttls' }, 'undecided', 'undecided'],
  [{ kind: 'aborted', stage: 'connect' }, 'undecided', 'undecided'],
  [{ kind: 'protocol-error', stage: 'ehlo', what: 'x' }, 'undecided', 'undecided'],
  [{ kind: 'loop' }, 'clear', 'clear'],
  [{ kind: 'tls', why: 'wrong version number' }, 'undecided', 'undecided', 'wrong version number'],
  [{ kind: 'certificate', why: 'has expired' }, 'refused', 'refused', 'has expired'],
  [{ kind: 'tls-not-offered' }, 'not-offered', 'not-offered'],
  [{ kind: 'tls-level', level: 'may' }, 'undecided', 'undecided'],
  [{ kind: 'auth-unavailable', why: 'no mechanism' }, 'clear', 'clear'],
]

test.each(FAILURES)('%j without TLS: %s, and %s where it is required', (...[failure, optional, required, reason]) => {
  const facts = (state: string) => ({ state, ...(reason === undefined ? {} : { reason }) })
  expect(tlsFacts({ terms: may, failure })).toMatchObject(facts(optional))
  expect(tlsFacts({ terms: secure, failure })).toMatchObject(facts(required))
})
