/** Reports of the checks that test/domain-check makes, for tests of what orders and shows them. */
import { readFileSync } from 'node:fs'
import { domainReportShape, type DomainReportJson } from '../../src/resources/domains/domain-check-json.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { realClock } from './real-clock.ts'

const GOLDEN = new URL('../domain-check/golden/reports.json', import.meta.url)

/** The report about a domain of the golden file, such as `good.example`. */
export function goldenReport(domain: string): DomainReportJson {
  const all = JSON.parse(readFileSync(GOLDEN, 'utf8')) as readonly DomainReportJson[]
  return domainReportShape.parse(all.find((one) => one.domain === domain))
}

/** Keeps a report in a queue, as the check of a domain for its own senders leaves it. */
export async function keepReport(queueDirectory: string, domain: string, report: DomainReportJson): Promise<void> {
  const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
  const at = realClock.now()
  await store.records.domainChecks.keep({
    domain,
    sender: domain,
    orderedBy: 'ann',
    node: 'mx1',
    beganAt: at,
    endedAt: at,
    failure: null,
    report,
  })
  await close()
}
