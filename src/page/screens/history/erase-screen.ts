/** The plan of an erasure: how much of what is kept of mail that has left would be changed. Nothing has changed yet. */
import type { ErasurePlanJson } from '../../../resources/plans/erasure-plan-json.ts'
import { erasedWords } from '../../../presentation/erased-words.ts'
import { html, type Html } from '../../../presentation/html.ts'
import { facts } from '../../markup/html-table.ts'
import { count, messages, plural } from '../../markup/times.ts'
import type { PlanParts } from './plan-screen.ts'

/** `messages of the history (12), events (3)`: the tables of the same records added up. */
const recordsText = (rows: ErasurePlanJson['rows']): string =>
  [...Map.groupBy(rows, ({ table }) => erasedWords(table))]
    .map(([words, those]) => `${words} (${count(those.reduce((sum, { rows: number }) => sum + number, 0))})`)
    .join(', ')

const planFacts = ({ rows, live_messages: live }: ErasurePlanJson): Html =>
  facts([
    ['records', recordsText(rows), 'wide'],
    ['in the queue and the trash', live === 0 ? null : `${messages(live)}, not changed: delete them first`],
  ])

export function erasureParts(plan: ErasurePlanJson): PlanParts {
  const changed = plan.rows.reduce((sum, { rows }) => sum + rows, 0)
  return {
    title: changed === 0 ? 'Erase addresses: nothing is kept' : `Erase addresses in ${plural(changed, 'record')} for ever?`,
    about: html`<p>Each address becomes a text such as erased-1f0c9a3b. Counts and times stay. Nothing can bring the addresses back.</p>
      ${planFacts(plan)}`,
    button: changed === 0 ? null : 'Erase',
    kind: 'danger',
  }
}
