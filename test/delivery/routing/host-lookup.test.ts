/** Addresses of hosts by DNS and by the resolver of the machine (smtp_host_lookup). */
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { SystemNet } from '../../../src/system/system-net.ts'
import type { Lookup } from '../../../src/system/net.ts'
import { createWorld } from '../../../src/testkit/index.ts'
import { SmtpAgentHarness, type WorldOptions } from '../../support/smtp-agent-harness.ts'

const TO = ['ann@example.net']
const HUB = 'relayhost=[hub.example]'
const SERVFAIL: Lookup<string> = { kind: 'failed', soft: true, reason: 'ESERVFAIL' }

const world = (lookup: string, ...config: readonly string[]): SmtpAgentHarness =>
  new SmtpAgentHarness({ config: [`smtp_host_lookup=${lookup}`, ...config] } satisfies WorldOptions)

describe('dns', () => {
  test('does not read the hosts file', async () => {
    const far = world('dns', HUB).inHostsFile('hub.example', '192.0.2.9')
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
    expect(far.asked).toEqual(['A hub.example', 'AAAA hub.example'])
  })
})

describe('native', () => {
  test('asks the machine, and never DNS, for the address of a host in brackets', async () => {
    const far = world('native', HUB).inHostsFile('hub.example', '192.0.2.9')
    far.host('elsewhere', '192.0.2.9')
    const result = await far.deliver({ to: TO })
    expect(result).toMatchObject({ relay: 'hub.example[192.0.2.9]:25' })
    expect(result.of().outcome).toBe('delivered')
    expect(far.asked).toEqual(['host hub.example'])
  })

  test('looks MX records up in DNS, and their hosts on the machine', async () => {
    const far = world('native').mx('example.net', [10, 'mx.example.net']).inHostsFile('mx.example.net', '192.0.2.9')
    far.host('elsewhere', '192.0.2.9')
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(far.asked).toEqual(['MX example.net', 'host mx.example.net'])
  })

  test('tries all addresses of the hosts file, of both families', async () => {
    const far = world('native', HUB, 'smtp_randomize_addresses=no').inHostsFile('hub.example', '2001:db8::9', '192.0.2.9')
    expect((await far.deliver({ to: TO })).of().status).toBe('4.4.1')
    expect(far.dialled).toEqual(['2001:db8::9', '192.0.2.9'])
  })

  test('a recipient domain in the hosts file is not led to a private address', async () => {
    const far = world('native').inHostsFile('example.net', '10.0.0.9')
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
    expect(far.dialled).toEqual([])
  })

  test.each([
    [
      'an unknown host',
      { kind: 'none', nxdomain: true },
      'bounced',
      '5.4.4',
      'unable to look up host example.net: Name or service not known',
    ],
    ['a temporary failure', SERVFAIL, 'deferred', '4.4.4', 'unable to look up host example.net: Temporary failure in name resolution'],
    [
      'a permanent failure',
      { kind: 'failed', soft: false, reason: 'REFUSED' },
      'bounced',
      '5.3.0',
      'unable to look up host example.net: Non-recoverable failure in name resolution',
    ],
  ] as const)('%s', async (_, answer, outcome, status, reason) => {
    const far = world('native').addressAnswer('example.net', answer)
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome, status, reason, stage: 'dns' })
  })

  test('an unknown relayhost is an error of the configuration', async () => {
    expect((await world('native', HUB).deliver({ to: TO })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
  })
})

describe('dns, native', () => {
  test('DNS comes first, in either order of the words', async () => {
    for (const words of ['dns, native', 'native, dns']) {
      const far = world(words, HUB).inHostsFile('hub.example', '192.0.2.9')
      far.host('hub.example', '192.0.2.1')
      expect(await far.deliver({ to: TO })).toMatchObject({ relay: 'hub.example[192.0.2.1]:25' })
      expect(far.asked).toEqual(['A hub.example', 'AAAA hub.example'])
    }
  })

  test('the machine is asked about a host that DNS does not have', async () => {
    const far = world('dns, native', HUB).inHostsFile('hub.example', '192.0.2.9')
    far.host('elsewhere', '192.0.2.9')
    expect(await far.deliver({ to: TO })).toMatchObject({ relay: 'hub.example[192.0.2.9]:25' })
  })

  test('a failed query is not answered by the machine', async () => {
    const far = world('dns, native', HUB).addressAnswer('hub.example', SERVFAIL).inHostsFile('hub.example', '192.0.2.9')
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.3' })
    expect(far.asked).toEqual(['A hub.example', 'AAAA hub.example'])
  })
})

test('in a world, the machine finds the hosts of the modelled DNS, whose faults take virtual time', async () => {
  const script = '[rule.slow]\ndomain = "mx.them.example"\ndns = "timeout"\nfirst = 1\n'
  await using far = await createWorld({ config: { smtp_host_lookup: 'native' }, script })
  await createTransport(far.transport()).sendMail({ from: 'app@us.example', to: 'ann@them.example', text: 'hi' })
  await far.settle()
  expect(far.attempts('ann@them.example')).toMatchObject([
    { outcome: 'deferred', stage: 'dns', reason: 'unable to look up host mx.them.example: Temporary failure in name resolution' },
    { outcome: 'delivered' },
  ])
})

test('the resolver of this machine knows localhost, and answers for a name that does not exist', async () => {
  const net = new SystemNet({ dnsServers: ['127.0.0.1:9'] })
  const localhost = await net.lookupHost('localhost')
  expect(localhost.kind === 'found' && localhost.records.some((address) => ['127.0.0.1', '::1'].includes(address))).toBe(true)
  expect((await net.lookupHost('does-not-exist.invalid')).kind).not.toBe('found')
})

test.each(['', 'nis', 'dns, nis'])('smtp_host_lookup = %j is refused', (value) => {
  expect(() => configFrom({ smtp_host_lookup: value }, 'relay.example')).toThrow(/smtp_host_lookup: expected one or more of dns, native/)
})
