/** Routes below /lab/v1, with their documentation; the values that their shapes share. */
import { z } from 'zod'
import { documentedRoute, type ApiRequest, type ApiRoute, type Definition } from '../api/route/api-route.ts'
import type { ProblemKind } from '../http/problem-details.ts'
import { shaped, type RequestBody } from '../http/request-body.ts'
import { parseJson, MOST_VALUES } from '../http/json-text.ts'
import { parseDuration } from '../system/duration.ts'
import { DAY, SECOND, type Duration } from '../system/clock.ts'
import type { Lab } from './lab.ts'
import type { LabWorld } from './lab-world.ts'
import { asProblem, LAB_PROBLEMS } from './lab-problems.ts'

export const LAB_BASE = '/lab/v1'

/** Maximum size of a body, in bytes. */
export const LARGEST_BODY = 25_000_000

type LabDefinition<Query, Body> = Omit<Definition<Query, Body>, 'role'>

/** A route of the lab itself. */
export const labRoute = <Query = unknown, Body = undefined>(definition: LabDefinition<Query, Body>): ApiRoute =>
  documentedRoute(LAB_BASE, { ...definition, role: 'operator' })

interface WorldDefinition<Query, Body> extends Omit<LabDefinition<Query, Body>, 'handler'> {
  handler(world: LabWorld, request: ApiRequest<Query, Body>): ReturnType<Definition<Query, Body>['handler']>
}

const WORLD_PROBLEMS: readonly ProblemKind[] = [LAB_PROBLEMS.unknownWorld, LAB_PROBLEMS.worldEnded]

/** A route of a world, whose path is below that of the world. An invalid argument of a call of the world is a member of the request. */
export const worldRoute = <Query = unknown, Body = undefined>(lab: Lab, definition: WorldDefinition<Query, Body>): ApiRoute =>
  labRoute<Query, Body>({
    ...definition,
    path: `/worlds/:world${definition.path}`,
    problems: [...WORLD_PROBLEMS, ...(definition.problems ?? [])],
    handler: async (request) => {
      const world = lab.named(request.parameters['world'] ?? '')
      try {
        return await definition.handler(world, request)
      } catch (error) {
        throw asProblem(error)
      }
    },
  })

/** A JSON body; one without bytes, and without a media type, is an empty object. */
export const optionalJson = <Body>(shape: z.ZodType<Body>): RequestBody<Body> => ({
  types: ['application/json', ''],
  limit: () => LARGEST_BODY,
  shape,
  isStreamed: false,
  read: async (received) => {
    const bytes = await received.collected()
    return shaped(shape, bytes.length === 0 ? {} : parseJson(bytes, MOST_VALUES))
  },
})

/** Parameters of a query are texts, so that a number of seconds is one, too. */
const isTime = (value: string | number): boolean => parseDuration(String(value)) !== undefined

export const time = z
  .union([z.string().max(100), z.number().min(0)])
  .refine(isTime, 'expected a time such as "5m" or "2d", or a number of seconds')
  .describe('a time such as "5m" or "2d", or a number of seconds')

export const signedTime = z
  .union([z.string().max(100), z.number()])
  .refine((value) => isTime(typeof value === 'number' ? Math.abs(value) : value.replace(/^\s*-/, '')), 'expected a time such as "-2h"')
  .describe('a time such as "2h" or "-2h", or a number of seconds')

export const milliseconds = (value: string | number): Duration => parseDuration(String(value)) ?? 0

const timeUpTo = (most: Duration, text: string) => time.refine((value) => milliseconds(value) <= most, `expected a time of at most ${text}`)

/** Limit in real time of a call that waits. */
export const within = timeUpTo(60 * SECOND, '60s')
  .default('10s')
  .describe('real time to wait at most; at most 60s')

export const advanceTime = timeUpTo(3_660 * DAY, '10y').describe('time of the world')

export const instant = z.string().describe('ISO 8601, UTC')
export const seconds = z.number().describe('seconds')
