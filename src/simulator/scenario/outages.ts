/** Outages of a scenario: the times for which a rule makes hosts unreachable. Pure. */
import type { Duration } from '../../system/clock.ts'
import type { Rule } from '../../testkit/remote/rule.ts'

export interface Outage {
  /** Name of the rule and, if it has one, its domain or host. */
  readonly label: string
  /** Times in milliseconds since the start of the scenario. */
  readonly from: Duration
  readonly until: Duration
}

/** True when hosts cannot be looked up or connected to, or do not begin a session. */
const isUnreachable = ({ fault }: Rule): boolean =>
  fault.at === 'greeting' || (fault.at === 'dns' && fault.dns !== 'slow') || (fault.at === 'connect' && fault.connect !== 'slow')

/** Outages that begin before `ended`, the end of the scenario. Rules without times are not outages. */
export function outagesOf(rules: readonly Rule[], ended: Duration): readonly Outage[] {
  const timed = rules.filter(({ when }) => when.from !== undefined || when.until !== undefined)
  return timed.filter(isUnreachable).flatMap(({ name, where, when }) => {
    const { from = 0, until = ended } = when
    const place = where.domain ?? where.mx
    const label = place === undefined ? name : `${name} at ${place}`
    return from >= ended ? [] : [{ label, from, until: Math.min(until, ended) }]
  })
}
