/** Routes of the screens of deliverability, and of the order of a check. Only the order looks something up. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { actorOf } from '../http/requests/requester.ts'
import { formBody } from '../http/request-body.ts'
import type { Answer, Route } from '../http/route-table.ts'
import { deliverability } from '../queries/domains/deliverability.ts'
import { domainQuestion, keptCheck, keptChecks, orderCheck } from '../queries/domains/kept-checks.ts'
import { textField } from './form-fields.ts'
import { queryText } from './markup/links.ts'
import type { View } from './markup/view.ts'
import { FORM_LIMIT, formRoute, problemIn, screenAnswer, screenRoute, type PageDeps, type SentForm } from './page-view.ts'
import { texts } from './markup/screen-parameters.ts'
import { deliverabilityScreen } from './screens/system/deliverability-screen.ts'
import { checkForm, checkQuestion, domainReportScreen, type CheckText } from './screens/system/domain-report-screen.ts'

const checkFields = z.strictObject({ domain: textField, from: textField })

const readRoutes = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/deliverability' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, deliverabilityScreen(view, await deliverability(deps.view)))
  }),
  screenRoute(deps, { path: '/deliverability/:domain', parameters: texts('from') }, async (request, view) => {
    assertUnlimited(request)
    const written = request.parameters['domain'] ?? ''
    const { domain, from } = domainQuestion(deps.view, { domain: written, from: request.asked.from || written })
    const check = (await keptCheck(deps.view, { domain, from })) ?? null
    const others = (await keptChecks(deps.view)).filter((one) => one.domain === domain && one.sender_domain !== from)
    return screenAnswer(view, domainReportScreen(view, { domain, from, check, others }))
  }),
]

/** The form for a check, with what was filled in, and what is wrong with it. */
const refused = (view: View, given: CheckText, error: unknown): Answer => screenAnswer(view, checkForm(view, given, problemIn(error)), 422)

async function ordered({ view: queue }: PageDeps, { body, requester }: SentForm<CheckText>, view: View): Promise<Answer> {
  try {
    const { domain, sender_domain: from } = await orderCheck(queue, body, actorOf(requester))
    return {
      kind: 'redirect',
      location: `deliverability/${encodeURIComponent(domain)}${queryText({ from: from === domain ? null : from })}`,
    }
  } catch (error) {
    return refused(view, body, error)
  }
}

const orderRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/domain-check', role: 'operator' } as const
  return [
    screenRoute(deps, { ...place, parameters: texts('domain', 'from') }, async (request, view) => {
      assertUnlimited(request)
      const given = { domain: request.asked.domain, from: request.asked.from || deps.view.loaded().config.myorigin }
      if (given.domain === '') return screenAnswer(view, checkForm(view, given, null))
      try {
        return screenAnswer(view, checkQuestion(view, domainQuestion(deps.view, given)))
      } catch (error) {
        return refused(view, given, error)
      }
    }),
    formRoute(deps, { ...place, body: formBody(checkFields, FORM_LIMIT) }, async (request, view) => {
      assertUnlimited(request)
      return ordered(deps, request, view)
    }),
  ]
}

export const deliverabilityPages = (deps: PageDeps): readonly Route[] => [...readRoutes(deps), ...orderRoutes(deps)]
