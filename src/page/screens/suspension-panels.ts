/** The questions before deliveries to a destination, or to all destinations of a provider, are suspended or resumed. */
import { field, type FormProblem } from '../markup/fields.ts'
import type { Screen } from '../markup/frame.ts'
import { linkTo } from '../markup/links.ts'
import { questionPanel } from '../markup/question-panel.ts'
import { plural } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

export interface Suspended {
  readonly kind: 'destination' | 'provider'
  readonly name: string
  /** Recipients that wait for it. */
  readonly waiting: number
  /** The suspended provider of a destination that is suspended itself; null for none. */
  readonly alsoWith: string | null
}

export type SuspensionVerb = 'suspend' | 'resume'

const aboutSuspension = ({ kind, waiting }: Suspended): string =>
  `${plural(waiting, 'recipient')} will wait, and new mail for ${kind === 'destination' ? 'it' : 'all its destinations, also for those that become known later,'} too. ` +
  'Deliveries that run now are completed. Mail still expires at the end of its lifetime.'

function aboutResumption({ kind, waiting, alsoWith }: Suspended): string {
  const mail = `${plural(waiting, 'recipient')} wait${waiting === 1 ? 's' : ''} for it`
  if (alsoWith !== null) return `No delivery starts: the provider ${alsoWith} stays suspended, and the destination with it. ${mail}.`
  return `Deliveries start again. ${mail}; those that are due are tried first.${kind === 'destination' ? '' : ' Destinations that are suspended themselves stay so.'}`
}

/** The fields of the form, as they were sent. */
export interface SuspensionText {
  readonly reason: string
  readonly for: string
}

interface SuspensionGiven extends SuspensionText {
  /** Mistake in the form; null for none. */
  readonly problem: FormProblem | null
}

const NONE_GIVEN: SuspensionGiven = { reason: '', for: '', problem: null }

/** The question before a suspension or its end. */
export function suspensionPanel(view: View, verb: SuspensionVerb, suspended: Suspended, given = NONE_GIVEN): Screen {
  const { kind, name } = suspended
  const [button, about] = verb === 'suspend' ? ['Suspend', aboutSuspension(suspended)] : ['Resume', aboutResumption(suspended)]
  const place = `${kind}s/${encodeURIComponent(name)}`
  return questionPanel({
    place: `${kind}s`,
    question: `${button} ${name}?`,
    about,
    action: linkTo(view, `${place}/${verb}`),
    button,
    fields:
      verb === 'suspend'
        ? [
            field({ name: 'reason', label: 'Reason (optional)', value: given.reason, longest: 200 }),
            field({ name: 'for', label: 'Ends by itself after (optional)', value: given.for, example: '2h' }),
          ]
        : [],
    problem: given.problem,
    back: linkTo(view, place),
    words: [kind, verb, name],
    call: { method: 'POST', path: `api/v1/${place}/${verb}`, body: {} },
  })
}
