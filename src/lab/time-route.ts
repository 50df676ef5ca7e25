/** The route of the bar with the time of a world on its page. */
import { z } from 'zod'
import { formBody } from '../http/request-body.ts'
import { route, type Route } from '../http/route-table.ts'
import { ADVANCES, VIRTUAL_TIME } from '../page/markup/time-bar.ts'
import { DAY, HOUR, MINUTE, type Duration } from '../system/clock.ts'

interface Waiting {
  readonly after: Readonly<Record<string, never>>
  readonly within: Duration
  readonly signal: AbortSignal
}

/** Changes of a world by the bar. */
export interface TimeControls {
  speed: number
  inOrder<T>(call: () => Promise<T> | T): Promise<T>
  advance(by: Duration, waiting: Waiting): Promise<void>
  settle(atMost: Duration, waiting: Waiting): Promise<Duration>
  crash(downFor: Duration): Promise<void>
}

const FORM_LIMIT = 1_000
const LONGEST_SETTLE: Duration = 30 * DAY

type Advance = keyof typeof ADVANCES

const pressed = z.strictObject({ do: z.enum(Object.keys(ADVANCES) as [Advance, ...Advance[]]) })
const asked = z.union([pressed, z.strictObject({ speed: z.coerce.number().min(0).max(1_000_000) })])

async function perform(button: Advance, controls: TimeControls, signal: AbortSignal): Promise<void> {
  const waiting: Waiting = { after: {}, within: 0, signal }
  switch (button) {
    case '1m':
      return controls.advance(MINUTE, waiting)
    case '1h':
      return controls.advance(HOUR, waiting)
    case '1d':
      return controls.advance(DAY, waiting)
    case 'settle':
      return void (await controls.settle(LONGEST_SETTLE, waiting))
    case 'crash':
      return controls.crash(0)
  }
}

/** The place below the root from which a form was sent. */
function placeOf(referer: string | undefined): string {
  const { pathname, search } = referer !== undefined && URL.canParse(referer) ? new URL(referer) : { pathname: '', search: '' }
  const [, place = ''] = /^\/lab\/v1\/worlds\/[^/]+\/(.*)$/.exec(pathname) ?? []
  return `./${place}${search}`
}

export const timeRoute = (controls: TimeControls): Route =>
  route({
    method: 'POST',
    path: `/${VIRTUAL_TIME}`,
    role: 'operator',
    body: formBody(asked, FORM_LIMIT),
    handler: async ({ body, headers, signal }) => {
      await controls.inOrder(async () => {
        if ('do' in body) await perform(body.do, controls, signal)
        else controls.speed = body.speed
      })
      return { kind: 'redirect', location: placeOf(headers.referer) }
    },
  })
