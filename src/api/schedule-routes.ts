/** Routes of the API for the `[schedule.NAME]` tables. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import { actorOf } from '../http/requests/requester.ts'
import { plannedRuns, plannedRunsOf } from '../queries/planned-runs.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { scheduleShape, schedulesShape } from '../resources/schedule-json.ts'
import type { Json } from '../resources/members.ts'
import { apiRoute, assertUnlimited, json, type ApiRoute } from './route/api-route.ts'

const GOING_ON: ProblemKind = {
  slug: 'schedule-running',
  status: 409,
  title: 'A run of the schedule goes on',
  about: 'No two runs of a schedule are made at once: wait for the end of the one that goes on.',
}

const endShape = z.object({
  schedule: z.string(),
  result: z.enum(['done', 'failed']),
  text: z.string(),
  changed: z.int().describe('messages, destinations, mails, files or domains'),
})

export type RunEndJson = Json<typeof endShape>

const unknown = (name: string): Problem =>
  new Problem(HTTP_PROBLEMS.unknown, `there is no table [schedule.${name}]; GET /api/v1/schedules has all tables`)

export const scheduleRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/schedules',
    role: 'viewer',
    summary: 'Work at times of the calendar',
    about: 'The members of `deferd schedule list --json`.',
    answers: { 200: { about: 'the tables, with their next and last runs', shape: schedulesShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await plannedRuns(view, view.loaded().config.schedule))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/schedules/:name',
    role: 'viewer',
    summary: 'One schedule with its runs',
    about: 'The members of `deferd schedule show NAME --json`.',
    answers: { 200: { about: 'the table, its next and its last runs', shape: scheduleShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async (request) => {
      assertUnlimited(request)
      const { name = '' } = request.parameters
      const found = await plannedRunsOf(view, view.loaded().config.schedule, name)
      if (found === undefined) throw unknown(name)
      return json(found)
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/schedules/:name/run',
    role: 'operator',
    summary: 'Make a run of a schedule now',
    about: 'As `deferd schedule run NAME`. Answers when the run has ended, also when it failed. Its next run stays as planned.',
    answers: { 200: { about: 'how the run ended', shape: endShape } },
    problems: [HTTP_PROBLEMS.unknown, GOING_ON],
    handler: async (request) => {
      assertUnlimited(request)
      const { name = '' } = request.parameters
      const run = await view.runSchedule(name, actorOf(request.requester))
      if (run.outcome === 'unknown') throw unknown(name)
      if (!('text' in run)) throw new Problem(GOING_ON, `a run of the schedule ${name} goes on: wait for its end`)
      return json({ schedule: name, result: run.outcome, text: run.text, changed: run.changed })
    },
  }),
]
