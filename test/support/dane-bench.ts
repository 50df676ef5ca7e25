/**
 * One process of test/interop/dane.test.ts, in a network namespace: SMTP servers with STARTTLS at 127.0.0.N:25, and deliveries of the real SMTP
 * client to each domain over the name server at 127.0.0.1. Its argument is a file with the hosts and domains; it prints one JSON line.
 */
import { systemClock } from '../../src/system/system-clock.ts'
import { realClock } from './real-clock.ts'
import { readFileSync } from 'node:fs'
import { configFrom } from '../../src/config/load.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { Router } from '../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../src/delivery/routing/routing-tables.ts'
import { SmtpAgent } from '../../src/delivery/smtp/smtp-agent.ts'
import { recipientId, type DeliveryRequest } from '../../src/mail/message.ts'
import { seededRandom } from '../../src/system/random.ts'
import { SystemNet } from '../../src/system/system-net.ts'
import { RemoteNetwork } from '../../src/testkit/remote/remote-network.ts'

interface Bench {
  readonly hosts: readonly { readonly name: string; readonly address: string; readonly cert: string; readonly key: string }[]
  readonly domains: readonly string[]
}

const { hosts, domains } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Bench
const net = new SystemNet({ dnsServers: ['127.0.0.1'] })
const remote = new RemoteNetwork({ clock: systemClock, random: seededRandom(1) })
for (const { name, address, cert, key } of hosts) {
  remote.setIdentity(name, { cert, key })
  await net.listen({ address, port: 25 }, (socket) => void remote.accept(socket, name))
}

function agentAt(level: string): { readonly agent: SmtpAgent; readonly router: Router } {
  const overrides = [
    'smtp_allow_private_addresses=yes',
    'smtp_dns_support_level=dnssec',
    'smtp_tls_mta_sts=no',
    'smtpd_listen=127.0.0.200:2525',
    `smtp_tls_security_level=${level}`,
  ]
  const { config } = configFrom({}, 'relay.us.test', { overrides })
  const router = new Router(config, openRoutingTables(config).tables)
  const readChunk = async (_: number, index: number) => (index === 0 ? Buffer.from('Subject: hi\r\n\r\nhi\r\n') : undefined)
  const shared = { config, router, policies: new DestinationPolicies(config), net, clock: realClock, random: seededRandom(1), readChunk }
  return { agent: new SmtpAgent({ ...shared, note: () => undefined, secured: () => undefined, holds: () => true }), router }
}

const outcomes: Record<string, object> = {}
for (const level of ['dane', 'dane-only']) {
  const { agent, router } = agentAt(level)
  for (const [n, domain] of domains.entries()) {
    const now = realClock.now()
    const address = `ann@${domain}`
    const message = { id: n + 1, createdAt: now, arrivedAt: now, sender: 'app@us.test', size: 19, contentId: 1, smtputf8: false }
    const progress = { dueAt: now, expiresAt: now + 86_400_000, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
    const recipients = [{ id: recipientId(n + 1, 0), address, ...progress }]
    const lease = { owner: 1, until: Infinity }
    const { destination } = router.route(address, message.sender)
    const request: DeliveryRequest = { lease, message, destination, recipients, fresh: true, forcedExpire: false }
    const result = await agent.deliver(request, { keepConnection: false, signal: new AbortController().signal })
    const [outcome] = typeof result === 'string' ? [] : result.outcomes.values()
    outcomes[`${level} ${domain}`] = {
      outcome: outcome?.outcome,
      status: outcome?.status.status,
      reason: outcome?.status.reason,
      tls: outcome?.status.tls,
    }
  }
}
process.stdout.write(`${JSON.stringify(outcomes)}\n`)
process.stdin.once('data', () => process.exit(0))
