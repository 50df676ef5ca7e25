import { expect, test } from 'vitest'
import type { Lookup, Net } from '../../src/system/net.ts'
import { SECOND } from '../../src/system/clock.ts'
import { peerName } from '../../src/smtpd/peer-name.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const NONE: Lookup<string> = { kind: 'none', nxdomain: true }
const found = (...records: string[]): Lookup<string> => ({ kind: 'found', records })

/** A network with these PTR names and their addresses. */
function network(names: Lookup<string>, addresses: Lookup<string>): Net {
  const nothing = () => Promise.reject(new Error('not called in this test'))
  return {
    dial: nothing,
    listen: nothing,
    lookupMx: nothing,
    lookupHost: nothing,
    lookupTxt: nothing,
    lookupSecure: nothing,
    ownAddresses: () => [],
    lookupNames: async () => names,
    lookupAddresses: async () => addresses,
  }
}

test.each([
  ['a name that leads back', found('Mail.Example.'), found('192.0.2.1', '192.0.2.7'), 'mail.example'],
  ['a name that leads elsewhere', found('mail.example'), found('192.0.2.1'), 'unknown'],
  ['a name that leads nowhere', found('mail.example'), NONE, 'unknown'],
  ['no name', NONE, found('192.0.2.7'), 'unknown'],
  ['a name that is none', found('mail\r\nX: y.example'), found('192.0.2.7'), 'unknown'],
  ['a failure', { kind: 'failed', soft: true, reason: 'SERVFAIL' }, found('192.0.2.7'), 'unknown'],
] as const)('%s', async (_, names, addresses, name) => {
  expect(await peerName('192.0.2.7', network(names, addresses), new VirtualClock())).toBe(name)
})

test('has a short lookup timeout', async () => {
  const clock = new VirtualClock()
  const silent: Net = { ...network(NONE, NONE), lookupNames: () => new Promise(() => {}) }
  const name = peerName('192.0.2.7', silent, clock)
  expect(clock.nextAt()).toBe(clock.now() + 5 * SECOND)
  clock.runNext()
  expect(await name).toBe('unknown')
})
