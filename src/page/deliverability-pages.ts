/** Routes of the screens of deliverability, and of the order of a check. Only the order looks something up. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { actorOf } from '../http/requests/requester.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Route } from '../http/route-table.ts'
import { deliverability } from '../queries/domains/deliverability.ts'
import { domainQuestion, keptCheck, keptChecks, orderCheck } from '../queries/domains/kept-checks.ts'
import { queryText } from './markup/links.ts'
import { FORM_LIMIT, requesterOf, screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { texts } from './markup/screen-parameters.ts'
import { deliverabilityScreen } from './screens/system/deliverability-screen.ts'
import { checkQuestion, domainReportScreen } from './screens/system/domain-report-screen.ts'

/** In characters, of a domain. */
const LONGEST_NAME = 255

const checkForm = z.strictObject({ domain: z.string().trim().min(1).max(LONGEST_NAME), from: z.string().trim().min(1).max(LONGEST_NAME) })

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

const orderRoutes = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/domain-check', role: 'operator', parameters: texts('domain', 'from') }, async (request, view) => {
    assertUnlimited(request)
    const { domain: written } = request.asked
    const from = request.asked.from || deps.view.loaded().config.myorigin
    if (written === '') return screenAnswer(view, checkQuestion(view, '', from))
    const asked = domainQuestion(deps.view, { domain: written, from })
    return screenAnswer(view, checkQuestion(view, asked.domain, asked.from))
  }),
  route({
    method: 'POST',
    path: '/domain-check',
    role: 'operator',
    body: formBody(checkForm, FORM_LIMIT),
    handler: async (request) => {
      const requester = requesterOf(request)
      assertUnlimited({ requester })
      const { domain, sender_domain: from } = await orderCheck(deps.view, request.body, actorOf(requester))
      return {
        kind: 'redirect',
        location: `deliverability/${encodeURIComponent(domain)}${queryText({ from: from === domain ? null : from })}`,
      }
    },
  }),
]

export const deliverabilityPages = (deps: PageDeps): readonly Route[] => [...readRoutes(deps), ...orderRoutes(deps)]
