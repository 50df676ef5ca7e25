/**
 * Thirty days of mail to a domain with an enforced MTA-STS policy, and to one with TLSA records, whose hosts, certificates, records and policy
 * host fail one after the other. No message is sent in clear or to another host while the policy forbids it, and mail flows when the far side is right again.
 */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { DAY, HOUR } from '../../src/system/clock.ts'
import type { TlsaRecord } from '../../src/system/net.ts'
import { makeCertificate, type MadeCertificate } from '../../src/testkit/remote/certificate-maker.ts'
import { TlsWorld } from '../support/tls-world.ts'

const DOMAIN = 'far.example'
const MX = `mx.${DOMAIN}`
const WEEK_IN_SECONDS = 7 * 86_400

interface Trouble {
  readonly name: string
  /** Hours since the start of the world. */
  readonly from: number
  readonly until: number
  readonly begin: (far: TlsWorld) => void
  readonly end: (far: TlsWorld) => void
  /** True when mail cannot be sent meanwhile. */
  readonly stops: boolean
}

const OF_POLICIES: readonly Trouble[] = [
  {
    name: 'the record cannot be looked up',
    from: 24,
    until: 96,
    stops: false,
    begin: (far) => far.world.rule({ domain: `_mta-sts.${DOMAIN}`, dns: 'servfail' }, 'no record'),
    end: (far) => far.world.remote.removeRules(({ name }) => name === 'no record'),
  },
  {
    name: 'the certificate has run out',
    from: 120,
    until: 130,
    stops: true,
    begin: (far) => far.secure(MX, { until: Date.UTC(2021, 0, 1) }),
    end: (far) => far.secure(MX),
  },
  {
    name: 'the policy host is down',
    from: 150,
    until: 290,
    stops: false,
    begin: (far) => far.unserve(DOMAIN),
    end: (far) => far.publish(DOMAIN, { id: 'one', maxAge: WEEK_IN_SECONDS }),
  },
  {
    name: 'an attacker answers with another exchanger, and suppresses the record',
    from: 300,
    until: 320,
    stops: true,
    begin: (far) => {
      far.record(DOMAIN)
      far.world.destination(DOMAIN).hasExchangers('10 mx.evil.example')
    },
    end: (far) => {
      far.publish(DOMAIN, { id: 'one', maxAge: WEEK_IN_SECONDS })
      far.world.destination(DOMAIN).hasExchangers(`10 ${MX}`)
    },
  },
  {
    name: 'STARTTLS is stripped',
    from: 360,
    until: 372,
    stops: true,
    begin: (far) => far.unsecure(MX),
    end: (far) => far.secure(MX),
  },
  {
    name: 'the domain moves to a new exchanger, and changes its policy first',
    from: 400,
    until: 401,
    stops: false,
    begin: (far) => far.publish(DOMAIN, { id: 'two', mx: [MX, 'new.far.example'], maxAge: WEEK_IN_SECONDS }),
    end: (far) => {
      far.secure('new.far.example')
      far.world.destination(DOMAIN).hasExchangers('10 new.far.example')
    },
  },
  {
    name: 'the exchanger has the certificate of another name',
    from: 450,
    until: 460,
    stops: true,
    begin: (far) => far.secure('new.far.example', { names: ['old.far.example'] }),
    end: (far) => far.secure('new.far.example'),
  },
  {
    name: 'the domain moves to a new exchanger, and its policy follows later',
    from: 500,
    until: 506,
    stops: true,
    begin: (far) => far.secure('third.far.example').world.destination(DOMAIN).hasExchangers('10 third.far.example'),
    end: (far) => far.publish(DOMAIN, { id: 'three', mx: ['third.far.example'], maxAge: WEEK_IN_SECONDS }),
  },
  {
    name: 'all names fail in DNS',
    from: 600,
    until: 610,
    stops: true,
    begin: (far) => {
      far.world.rule({ domain: DOMAIN, dns: 'servfail' }, 'no DNS')
      far.world.rule({ domain: `_mta-sts.${DOMAIN}`, dns: 'timeout' }, 'no DNS')
    },
    end: (far) => far.world.remote.removeRules(({ name }) => name === 'no DNS'),
  },
]

const record = (certificate: MadeCertificate): TlsaRecord => ({
  usage: 3,
  selector: 1,
  matchingType: 1,
  data: createHash('sha256').update(certificate.spki).digest(),
})
const FIRST = makeCertificate({ seed: 'first' })
const SECOND = makeCertificate({ seed: 'second' })
const THIRD = makeCertificate({ seed: 'third' })

function publishTlsa({ world }: TlsWorld, ...certificates: readonly MadeCertificate[]): void {
  world.remote.setZone(`_25._tcp.${MX}`, { mx: [], a: [], aaaa: [], tlsa: certificates.map(record) })
}

const OF_TLSA: readonly Trouble[] = [
  {
    name: 'TLSA records cannot be looked up',
    from: 24,
    until: 60,
    stops: true,
    begin: (far) => far.world.rule({ domain: `_25._tcp.${MX}`, dns: 'servfail' }, 'no TLSA'),
    end: (far) => far.world.remote.removeRules(({ name }) => name === 'no TLSA'),
  },
  {
    name: 'the key is changed after its record',
    from: 120,
    until: 144,
    stops: false,
    begin: (far) => publishTlsa(far, FIRST, SECOND),
    end: (far) => {
      far.world.remote.setIdentity(MX, SECOND)
      publishTlsa(far, SECOND)
    },
  },
  {
    name: 'the key is changed without its record',
    from: 200,
    until: 212,
    stops: true,
    begin: (far) => far.world.remote.setIdentity(MX, THIRD),
    end: (far) => publishTlsa(far, THIRD),
  },
  {
    name: 'STARTTLS is stripped',
    from: 300,
    until: 312,
    stops: true,
    begin: (far) => far.unsecure(MX),
    end: (far) => far.world.remote.setIdentity(MX, THIRD),
  },
  {
    name: 'MX records cannot be looked up',
    from: 400,
    until: 410,
    stops: true,
    begin: (far) => far.world.rule({ domain: DOMAIN, dns: 'timeout' }, 'no MX'),
    end: (far) => far.world.remote.removeRules(({ name }) => name === 'no MX'),
  },
  {
    name: 'TLSA look-ups fail, and an MTA-STS policy would allow the host',
    from: 500,
    until: 520,
    stops: true,
    begin: (far) => {
      far.world.rule({ domain: `_25._tcp.${MX}`, dns: 'timeout' }, 'no TLSA')
      far.secure(MX).publish(DOMAIN, { id: 'one' })
    },
    end: (far) => {
      far.world.remote.setIdentity(MX, THIRD)
      far.world.remote.removeRules(({ name }) => name === 'no TLSA')
    },
  },
]

const HOURS = 30 * 24

/** Sends a message every three hours, and compares the failed attempts with the troubles. */
async function month(far: TlsWorld, troubles: readonly Trouble[]): Promise<readonly string[]> {
  const start = far.world.now()
  const failed: { readonly hour: number; readonly to: string }[] = []
  far.world.relayEvents.listen((event) => {
    if (event.kind !== 'attempted') return
    for (const { at, recipient, outcome } of event.attempts) {
      const to = event.request.recipients.find(({ id }) => id === recipient)?.address ?? ''
      if (outcome !== 'delivered') failed.push({ hour: (at - start) / HOUR, to })
    }
  })
  const recipients: string[] = []
  for (let hour = 0; hour < HOURS; hour++) {
    for (const { from, until, begin, end } of troubles) {
      if (hour === from) begin(far)
      if (hour === until) end(far)
    }
    if (hour % 3 === 0) {
      const to = `user${hour}@${DOMAIN}`
      recipients.push(to)
      await far.send(to)
    }
    await far.world.advance('1h')
  }
  await far.world.settle()
  expect(far.world.now() - start).toBeLessThan(31 * DAY)

  const mails = recipients.map((to) => far.world.mailbox(to).mails())
  expect(mails.map((received) => received.length)).toEqual(recipients.map(() => 1))
  expect(mails.filter(([mail]) => mail?.tls !== true)).toEqual([])
  for (const { name, from, until, stops } of troubles) {
    const during = failed.filter(({ hour }) => hour >= from && hour < until)
    expect({ name, stops: during.length > 0 }).toEqual({ name, stops })
    const next = Math.min(HOURS, ...troubles.filter((other) => other.from >= until).map((other) => other.from))
    const after = failed.filter(({ hour }) => hour >= until && hour < next)
    expect({ name, most: Math.max(0, ...after.map(({ to }) => after.filter((one) => one.to === to).length)) <= 1 }).toEqual({
      name,
      most: true,
    })
  }
  const hosts = new Set<string>()
  for (const { event } of far.world.history().events)
    if ('mx' in event && 'event' in event && event.event === 'connected') hosts.add(String(event.mx))
  return [...hosts].toSorted((a, b) => a.localeCompare(b))
}

test('an MTA-STS policy holds, and mail flows again with at most one more retry', async () => {
  await using far = await TlsWorld.open({ maximal_queue_lifetime: '5d' })
  far.secure(MX).secure('mx.evil.example').publish(DOMAIN, { id: 'one', maxAge: WEEK_IN_SECONDS })
  far.world.destination(DOMAIN).hasExchangers(`10 ${MX}`)
  expect(await month(far, OF_POLICIES)).toEqual(['mx.far.example', 'new.far.example', 'third.far.example'])
})

test('TLSA records are obeyed, and mail flows again with at most one more retry', async () => {
  const dane = { smtp_tls_security_level: 'dane', smtp_dns_support_level: 'dnssec' }
  await using far = await TlsWorld.open({ maximal_queue_lifetime: '5d', ...dane })
  far.world.remote.setZone(DOMAIN, { mx: [{ preference: 10, exchange: MX }], a: [], aaaa: [], secure: true })
  far.world.remote.setIdentity(MX, FIRST)
  publishTlsa(far, FIRST)
  expect(await month(far, OF_TLSA)).toEqual([MX])
})
