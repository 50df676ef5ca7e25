/** Checks of domains: the kept ones, one of them, and the order of a new one. A query looks nothing up. */
import type { Actor } from '../../store/records/audit-log.ts'
import { asciiName } from '../../delivery/sts/sts-record.ts'
import { HTTP_PROBLEMS, invalidPart, Problem, type ProblemKind } from '../../http/problem-details.ts'
import { senderDomainOf } from '../../relay/domain-checks.ts'
import type { DomainQuestion } from '../../relay/domain-question.ts'
import {
  domainCheckJson,
  domainCheckSummaryJson,
  type DomainCheckJson,
  type DomainChecksJson,
  type DomainCheckSummaryJson,
} from '../../resources/domains/domain-check-json.ts'
import { clipped } from '../../presentation/text.ts'
import { shown } from '../../system/shown-value.ts'
import { CHECKS_KEPT_FOR } from '../../store/records/domain-check.ts'
import { asOf, type QueueView } from '../queue-view.ts'

export const TOO_MANY_CHECKS: ProblemKind = {
  slug: 'too-many-checks',
  status: 503,
  title: 'Too many checks of domains',
  about: 'The node makes as many checks of domains at once as it may: repeat the request after the seconds in `Retry-After`.',
}

type ChecksView = Pick<QueueView, 'reader' | 'clock'>

/** The kept checks, the newest first. */
export async function keptChecks({ reader, clock }: ChecksView): Promise<readonly DomainCheckSummaryJson[]> {
  const now = clock.now()
  return (await reader.records.domainChecks.all())
    .filter(({ beganAt }) => beganAt >= now - CHECKS_KEPT_FOR)
    .toSorted((a, b) => b.beganAt - a.beganAt)
    .map((check) => domainCheckSummaryJson(check, now, clock.wall))
}

export const domainCheckList = async (view: ChecksView): Promise<DomainChecksJson> => ({
  checks: await keptChecks(view),
  as_of: asOf(view),
})

/** A question as a client has written it. Without a sender it is about those of `myorigin`. */
interface WrittenQuestion {
  readonly domain: string
  /** Address or domain. */
  readonly from?: string | undefined
}

/** In characters, of a text that an error repeats. */
const LONGEST_QUOTED = 100

const quoted = (text: string): string => clipped(shown(text), LONGEST_QUOTED)

/** The question with its domains in A-labels. Throws Problem for what is no domain. */
export function domainQuestion({ loaded }: Pick<QueueView, 'loaded'>, { domain: written, from }: WrittenQuestion): DomainQuestion {
  const domain = asciiName(written)
  if (domain === undefined) throw invalidPart('/domain', `expected the name of a domain, got ${quoted(written)}`)
  const sender = from ?? loaded().config.myorigin
  const at = sender.lastIndexOf('@') + 1
  const senderDomain = asciiName(sender.slice(at))
  if (senderDomain === undefined) throw invalidPart('/from', `expected an address or a domain, got ${quoted(sender)}`)
  return { domain, from: sender.slice(0, at) + senderDomain }
}

/** One kept check; undefined without one. Throws Problem for what is no domain. */
export async function keptCheck(
  view: ChecksView & Pick<QueueView, 'loaded'>,
  written: WrittenQuestion,
): Promise<DomainCheckJson | undefined> {
  const { reader, clock } = view
  const question = domainQuestion(view, written)
  const now = clock.now()
  const found = await reader.records.domainChecks.of(question.domain, senderDomainOf(question))
  return found === undefined || found.beganAt < now - CHECKS_KEPT_FOR ? undefined : domainCheckJson(found, now, clock.wall)
}

/** One kept check. Throws Problem without one. */
export async function domainCheckOf(view: QueueView, written: WrittenQuestion): Promise<DomainCheckJson> {
  const found = await keptCheck(view, written)
  if (found !== undefined) return found
  throw new Problem(HTTP_PROBLEMS.unknown, 'no check of this domain for these senders is kept', {
    hint: 'POST /domain-checks orders one',
  })
}

/** Orders a check, unless the same one goes on. Throws Problem while too many go on. */
export async function orderCheck(view: QueueView, written: WrittenQuestion, actor: Actor): Promise<DomainCheckJson> {
  const question = domainQuestion(view, written)
  const order = await view.domainChecks().order(question, actor)
  if (order === 'goes-on') return domainCheckOf(view, question)
  throw new Problem(TOO_MANY_CHECKS, 'as many checks of domains go on as may at once: repeat the request in some seconds', {
    headers: { 'retry-after': '5' },
  })
}
