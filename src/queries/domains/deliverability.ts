/** Deliverability: the domains of senders with their keys, mail and last checks, and the mail of the last day by provider. Looks nothing up. */
import { keysFor } from '../../dkim/signer.ts'
import {
  flowJson,
  type DeliverabilityJson,
  type ProviderFlowJson,
  type SenderDomainJson,
} from '../../resources/domains/deliverability-json.ts'
import type { DomainCheckSummaryJson } from '../../resources/domains/domain-check-json.ts'
import { NO_COUNTS, plus, type NamedDimension, type SeriesCounts } from '../../store/records/series.ts'
import { DAY, HOUR, type QueueTime } from '../../system/clock.ts'
import { keptChecks } from './kept-checks.ts'
import { asOf, type QueueView } from '../queue-view.ts'

/** Domains without a `[dkim]` table that are shown. */
const MOST_DOMAINS = 50

type View = Pick<QueueView, 'reader' | 'clock' | 'loaded'>

/** Recipients since the begin of an hour, by name; without those of names that have no counts of their own. */
async function countsBy({ reader, clock }: View, dimension: NamedDimension, since: QueueTime): Promise<ReadonlyMap<string, SeriesCounts>> {
  const slots = await reader.records.series.of({ dimension, since, until: clock.now() + HOUR, step: DAY, name: null })
  const sums = new Map<string, SeriesCounts>()
  for (const { name, ...counts } of slots) {
    if (name === '') continue
    sums.set(name, plus(sums.get(name) ?? NO_COUNTS, counts))
  }
  return sums
}

/** The domain whose own senders a check is about. */
const isOwn = ({ domain, sender_domain: sender }: DomainCheckSummaryJson): boolean => domain === sender

export async function deliverability(view: View): Promise<DeliverabilityJson> {
  const { clock, loaded } = view
  const { config } = loaded()
  const since = Math.floor((clock.now() - DAY) / HOUR) * HOUR
  const [sent, providers, checks] = await Promise.all([
    countsBy(view, 'sender_domain', since),
    countsBy(view, 'provider', since),
    keptChecks(view),
  ])
  // A heading with a dot is about subdomains, of which those that send mail are known.
  const configured = [...config.dkim.keys()].filter((heading) => !heading.startsWith('.'))
  const own = new Set([...configured, config.myorigin.toLowerCase()])
  const busiest = [...sent]
    .filter(([name]) => name !== '<>' && !own.has(name))
    .toSorted(([, a], [, b]) => b.accepted - a.accepted)
    .slice(0, MOST_DOMAINS)
  const names = [...[...own].toSorted(), ...busiest.map(([name]) => name)]
  const of = new Map(checks.filter(isOwn).map((check) => [check.domain, check]))
  return {
    since: clock.wall.seconds(since),
    sender_domains: names.map((name): SenderDomainJson => {
      const counts = sent.get(name) ?? NO_COUNTS
      return {
        sender_domain: name,
        keys: keysOf(config, name),
        accepted: counts.accepted,
        ...flowJson(counts),
        check: of.get(name) ?? null,
      }
    }),
    providers: [...config.provider.keys()]
      .map((name): ProviderFlowJson => ({ provider: name, ...flowJson(providers.get(name) ?? NO_COUNTS) }))
      .toSorted((a, b) => b.deferred - a.deferred || (a.provider < b.provider ? -1 : 1)),
    checks: checks.filter((check) => !isOwn(check) || !names.includes(check.domain)),
    as_of: asOf(view),
  }
}

function keysOf({ dkim }: ReturnType<QueueView['loaded']>['config'], name: string): SenderDomainJson['keys'] {
  const domains = new Map([...dkim].map(([heading, { keys }]) => [heading, { domain: heading.replace(/^\./, ''), keys }]))
  const found = keysFor(domains, name)
  return found === undefined ? [] : found.keys.map(({ selector, staged }) => ({ domain: found.domain, selector, signs: !staged }))
}
