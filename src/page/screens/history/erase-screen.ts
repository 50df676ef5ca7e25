/** The plan of an erasure: how much of what is kept of mail that has left would be changed. Nothing has changed yet. */
import type { ErasurePlanJson } from '../../../resources/plans/erasure-plan-json.ts'
import { erasedWords } from '../../../presentation/erased-words.ts'
import { html, type Html } from '../../../presentation/html.ts'
import { facts } from '../../markup/html-table.ts'
import { addressPart } from '../../markup/long-words.ts'
import { clockTime, count, messages, plural } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import type { HistoryFields, PlanParts } from './plan-screen.ts'

/** `messages of the history (12), events (3)`: the tables of the same records added up. */
const recordsText = (rows: ErasurePlanJson['rows']): string =>
  [...Map.groupBy(rows, ({ table }) => erasedWords(table))]
    .map(([words, those]) => `${words} (${count(those.reduce((sum, { rows: number }) => sum + number, 0))})`)
    .join(', ')

const planFacts = (view: View, { rows, live_messages: live, before }: ErasurePlanJson, { recipient, sender }: HistoryFields): Html =>
  facts([
    ['of recipients', recipient === undefined ? null : addressPart(recipient)],
    ['of senders', sender === undefined ? null : addressPart(sender)],
    ['in all mail that has left', html`before ${clockTime(view, before)}, whatever its outcome`],
    ['records', recordsText(rows), 'wide'],
    ['in the queue and the trash', live === 0 ? null : `${messages(live)}, not changed: delete them first`],
  ])

export function erasureParts(view: View, plan: ErasurePlanJson, fields: HistoryFields): PlanParts {
  const changed = plan.rows.reduce((sum, { rows }) => sum + rows, 0)
  return {
    title: changed === 0 ? 'Erase addresses: nothing is kept' : `Erase addresses in ${plural(changed, 'record')} for ever?`,
    about: html`<p>Each address becomes a text such as erased-1f0c9a3b. Counts and times stay. Nothing can bring the addresses back.</p>
      ${planFacts(view, plan, fields)}`,
    button: changed === 0 ? null : 'Erase',
    kind: 'danger',
  }
}
