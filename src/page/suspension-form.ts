/** The form that suspends a destination or a provider: the members of the API's request. */
import { z } from 'zod'
import { suspensionRequest, suspensionShape } from '../api/route/suspension-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import { formBody } from '../http/request-body.ts'
import type { Answer } from '../http/route-table.ts'
import { checkValue } from '../presentation/checked-value.ts'
import type { SuspensionRequest } from '../queue/operations.ts'
import { optionalField, spanField, textField } from './form-fields.ts'
import type { View } from './markup/view.ts'
import { FORM_LIMIT, problemOf, screenAnswer, type SentForm } from './page-view.ts'
import { suspensionPanel, type Suspended, type SuspensionText } from './screens/suspension-panels.ts'

const { reason } = suspensionShape.shape

const suspensionFields = z.object({ reason: optionalField.pipe(reason.unwrap().nullable()), for: spanField })

export const suspensionBody = formBody(z.strictObject({ reason: textField, for: textField }), FORM_LIMIT)

interface Suspending {
  /** Read for a form with a mistake. */
  readonly suspended: () => Promise<Suspended>
  /** Carries the suspension out, and leads on. */
  readonly suspend: (asked: SuspensionRequest) => Promise<Answer>
}

/** Carries out the suspension that a form asks for. A form with a mistake is shown again. */
export async function suspensionAnswer(
  { body, requester }: SentForm<SuspensionText>,
  view: View,
  { suspended, suspend }: Suspending,
): Promise<Answer> {
  const checked = checkValue(suspensionFields, body)
  if (!checked.ok) {
    const given = { ...body, problem: problemOf(checked.invalid) }
    return screenAnswer(view, suspensionPanel(view, 'suspend', await suspended(), given), 422)
  }
  const { reason: given, for: time } = checked.value
  return suspend(suspensionRequest({ reason: given ?? undefined, for: time ?? undefined }, actorOf(requester), view.now))
}
