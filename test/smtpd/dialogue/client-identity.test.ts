import { expect, test } from 'vitest'
import { defaultConfig } from '../../../src/config/load.ts'
import { ClientIdentity, type ListenerRules } from '../../../src/smtpd/dialogue/client-identity.ts'
import { ClientCounts, ClientLimits } from '../../../src/smtpd/dialogue/client-limits.ts'
import { RelayPolicy } from '../../../src/smtpd/dialogue/relay-policy.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const { config } = defaultConfig('relay.example')
const rules = { settings: config, access: new RelayPolicy(config), limits: new ClientLimits(config, new ClientCounts(new VirtualClock())) }
const TLS = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' }

const clientOf = (listener: ListenerRules, address = '192.0.2.1') => new ClientIdentity(rules, { name: 'unknown', address }, listener)

test('the protocol names extensions, TLS and login (RFC 3848)', () => {
  const client = clientOf({ tls: 'may', auth: 'may' })
  client.greeted('a.example', false)
  expect(client.protocol(false)).toBe('SMTP')
  client.greeted('a.example', true)
  expect([client.protocol(false), client.protocol(true)]).toEqual(['ESMTP', 'UTF8SMTP'])
  client.secured(TLS)
  expect([client.helo, client.isExtended]).toEqual(['', false])
  client.greeted('a.example', true)
  client.loggedIn({ name: 'app', method: 'PLAIN' })
  expect(client.protocol(true)).toBe('UTF8SMTPSA')
})

test('a login is possible over TLS, and permits to relay', () => {
  const client = clientOf({ tls: 'may', auth: 'may' })
  expect([client.mayStartTls, client.mayLogIn, client.mayRelay]).toEqual([true, false, false])
  client.secured(TLS)
  expect([client.mayStartTls, client.mayLogIn]).toEqual([false, true])
  client.loggedIn({ name: 'app', method: 'PLAIN' })
  expect([client.mayRelay, client.isLocal, client.user?.name]).toEqual([true, true, 'app'])
})

test('a login by XCLIENT permits nothing where clients may not log in, and replaces the greeting', () => {
  const client = clientOf({ tls: 'none', auth: 'none' }, '127.0.0.1')
  client.greeted('a.example', true)
  expect([client.mayRelay, client.isLocal]).toEqual([true, true])
  client.replace({ address: '192.0.2.1', login: 'app' })
  expect([client.mayRelay, client.isLocal, client.login?.method, client.user]).toEqual([false, false, 'XCLIENT', undefined])
  expect([client.helo, client.isExtended]).toEqual(['', false])
})

test('the third failed login is the last', () => {
  const client = clientOf({ tls: 'may', auth: 'required' })
  expect(client.lacksLogin).toBe(true)
  expect([client.loginFailed(), client.loginFailed(), client.loginFailed()]).toEqual([false, false, true])
})
