/** The methods of RemoteDomain as requests: their names in snake case, and their arguments as members. */
import { z } from 'zod'
import { DNS_FAULTS } from '../testkit/remote/rule.ts'
import { STS_FAILURES, STS_MODES } from '../testkit/remote/published-policies.ts'
import { CERTIFICATES } from '../testkit/remote/world-certificates.ts'
import type { RemoteDomain } from '../testkit/scripted/remote-domain.ts'
import { time } from './lab-route.ts'

interface Verb {
  readonly shape: z.ZodType
  readonly call: (domain: RemoteDomain, given: unknown) => void
}

const verb = <Shape extends z.ZodRawShape>(
  members: Shape,
  call: (domain: RemoteDomain, given: z.output<z.ZodObject<Shape>>) => void,
): Verb => {
  const shape = z.strictObject(members)
  return { shape, call: (domain, given) => call(domain, shape.parse(given)) }
}

const text = z.string().max(1_000)
const recipient = text.optional().describe('recipient; * matches any text, and all when absent')
const reply = text.optional().describe('reply of the server, such as "550 5.1.1 no such user"')
const lasting = time.optional()

/** An option that is absent, as the methods expect it. */
const given = <T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> }

export const VERBS: Readonly<Record<string, Verb>> = {
  greylists: verb({ delay: time, window: lasting }, (domain, { delay, window }) => domain.greylists(delay, given({ window }))),
  is_down: verb({}, (domain) => domain.isDown()),
  is_down_for: verb({ time }, (domain, one) => domain.isDownFor(one.time)),
  is_down_between: verb({ from: time, until: time }, (domain, { from, until }) => domain.isDownBetween(from, until)),
  is_unreachable: verb({}, (domain) => domain.isUnreachable()),
  rejects: verb({ recipient, reply }, (domain, one) => domain.rejects(one.recipient, one.reply)),
  defers: verb({ recipient, reply, for: lasting }, (domain, one) => domain.defers(one.recipient, one.reply, given({ for: one.for }))),
  fails_first: verb({ times: z.int().min(1), reply }, (domain, one) => domain.failsFirst(one.times, one.reply)),
  mailbox_is_full: verb({ recipient: text, for: lasting }, (domain, one) => domain.mailboxIsFull(one.recipient, given({ for: one.for }))),
  throttles: verb({ rate: text, penalty: lasting, reply }, (domain, { rate, ...options }) => domain.throttles(rate, given(options))),
  allows_connections: verb({ count: z.int().min(0) }, (domain, { count }) => domain.allowsConnections(count)),
  drops_after_dot: verb({ times: z.int().min(1).default(1) }, (domain, { times }) => domain.dropsAfterDot(times)),
  is_slow: verb({ time }, (domain, one) => domain.isSlow(one.time)),
  fails_in_dns: verb({ how: z.enum(DNS_FAULTS).optional() }, (domain, { how }) => domain.failsInDns(how)),
  has_exchangers: verb({ records: z.array(text).max(1_000) }, (domain, { records }) => domain.hasExchangers(...records)),
  offers_tls: verb({ certificate: z.enum(CERTIFICATES).optional() }, (domain, { certificate }) => domain.offersTls(certificate)),
  has_tlsa: verb({ records: z.array(text).max(1_000).default([]) }, (domain, { records }) => domain.hasTlsa(...records)),
  has_sts_policy: verb(
    {
      mode: z.enum(STS_MODES),
      mx: z.array(text).max(1_000).optional(),
      max_age: lasting,
      fails: z.union([z.enum(STS_FAILURES), z.int()]).optional(),
    },
    (domain, { max_age: maxAge, mode, ...policy }) => domain.hasStsPolicy({ mode, ...given({ ...policy, maxAge }) }),
  ),
  recovers: verb({}, (domain) => domain.recovers()),
}
