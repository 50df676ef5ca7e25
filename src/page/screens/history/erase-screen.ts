/** The plan of an erasure: how much of what is kept of mail that has left would be changed. Nothing has changed yet. */
import type { ErasurePlanJson } from '../../../resources/plans/erasure-plan-json.ts'
import { html, type Html } from '../../../presentation/html.ts'
import { facts } from '../../markup/html-table.ts'
import { count, messages, plural } from '../../markup/times.ts'
import type { PlanParts } from './plan-screen.ts'

const planFacts = ({ messages: number, rows, live_messages: live }: ErasurePlanJson): Html =>
  facts([
    ['messages of the history', count(number)],
    ['rows by table', rows.length === 0 ? null : rows.map(({ table, rows: changed }) => `${table} (${count(changed)})`).join(', '), 'wide'],
    ['in the queue and the trash', live === 0 ? null : `${messages(live)}, not changed: delete them first`],
  ])

export function erasureParts(plan: ErasurePlanJson): PlanParts {
  const changed = plan.rows.reduce((sum, { rows }) => sum + rows, 0)
  return {
    title: changed === 0 ? 'Erase addresses: nothing is kept' : `Erase addresses in ${plural(changed, 'row')} for ever?`,
    about: html`<p>Each address becomes a text such as erased-1f0c9a3b. Counts and times stay. Nothing can bring the addresses back.</p>
      ${planFacts(plan)}`,
    button: changed === 0 ? null : 'Erase',
    kind: 'danger',
  }
}
