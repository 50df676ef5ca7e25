/** Routes that choose the time zone of the page. */
import { z } from 'zod'
import { screenPath } from '../admin/account-routes.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { formBody } from '../http/request-body.ts'
import { route, type Route } from '../http/route-table.ts'
import { screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { texts } from './markup/screen-parameters.ts'
import { zoneScreen } from './screens/system/zone-screen.ts'
import { chosenZone, zoneCookie, zoneNames } from './shown-zone.ts'

/** In bytes. */
const FORM_LIMIT = 8_192

export const zoneRoutes = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/zone', parameters: texts('back') }, async ({ asked, headers }, view) =>
    screenAnswer(
      view,
      zoneScreen(view, {
        chosen: chosenZone(headers.cookie),
        server: deps.view.clock,
        names: [...zoneNames()],
        back: screenPath(asked.back),
      }),
    ),
  ),
  route({
    method: 'POST',
    path: '/zone',
    role: 'viewer',
    body: formBody(z.strictObject({ zone: z.string(), back: z.string() }), FORM_LIMIT),
    handler: ({ body: { zone, back }, client }) => {
      if (zone !== '' && !zoneNames().has(zone)) throw new Problem(HTTP_PROBLEMS.invalid, 'choose a time zone of the list')
      return {
        kind: 'redirect',
        location: `./${screenPath(back)}`,
        headers: { 'set-cookie': zoneCookie(client, zone === '' ? null : zone) },
      }
    },
  }),
]
