/** Checks a domain as `deferd check domain` does, with the settings and the memory of a relay that runs. */
import { openRoutingTables } from '../delivery/routing/routing-tables.ts'
import { loadDkimKeys } from '../dkim/keys.ts'
import { gatherFacts } from '../domain-check/domain-facts.ts'
import { domainJson, domainReport, type DomainReport } from '../domain-check/domain-report.ts'
import type { DomainReportJson } from '../resources/domains/domain-check-json.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { savedProviders } from '../store/records/saved-providers.ts'
import type { Clock } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import type { Relay } from './relay.ts'

export interface DomainQuestion {
  /** In A-labels. */
  readonly domain: string
  /** Address of a sender, or its domain. */
  readonly from: string
}

interface AskedRelay {
  readonly relay: Relay
  readonly reader: QueueReader
  readonly clock: Clock
  readonly random: Random
  readonly net: Net
}

/** The report, for sentences and as JSON. An abort ends the sessions with hosts. */
export async function answerQuestion(
  { domain, from }: DomainQuestion,
  { relay, reader, net, clock, random }: AskedRelay,
  signal: AbortSignal,
): Promise<DomainReport & { readonly json: DomainReportJson }> {
  const { config, secrets = {}, routingTables, dkimKeys } = relay.settings
  const { stsPolicies, providerMembers } = reader.records
  const facts = await gatherFacts(domain, from, {
    config,
    secrets,
    routingTables: routingTables ?? openRoutingTables(config).tables,
    dkimKeys: dkimKeys ?? loadDkimKeys(config),
    net,
    clock,
    random,
    signal,
    policyOf: (name) => stsPolicies.of(name),
    providerOf: async (name) => (await providerMembers.providerOf(name)) ?? null,
    providerState: async (name) => (await savedProviders(reader.records))(name),
    destination: async (name) => ({
      live: relay.scheduler.destinations.status(name),
      record: (await reader.destinationRecords()).find((one) => one.name === name),
    }),
  })
  const report = domainReport(facts, config)
  return { ...report, json: domainJson(facts, report) }
}
