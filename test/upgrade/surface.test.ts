/** The promise of docs/compatibility.md: what a release has for programs and operators stays. */
import { beforeAll, describe, expect, test } from 'vitest'
import { apiSurface, type OpenApiDocument } from '../../scripts/release/api-surface.ts'
import { releases } from '../../scripts/release/frozen-migrations.ts'
import { breaches, publicSurface, releasedSurface, type Surfaces } from '../../scripts/release/surface.ts'

let present: Surfaces
beforeAll(async () => {
  present = await publicSurface()
})

const ALL = releases().flatMap((version) =>
  Object.entries(releasedSurface(version)).map(([part, promises]) => ({ version, part, promises })),
)

test.each(ALL)('$part of $version are all there, as they were', ({ version, part, promises }) => {
  expect(Object.keys(promises).length).toBeGreaterThan(5)
  expect(breaches(version, { [part]: promises }, present)).toEqual([])
})

/** An API with one operation, which has a body and an answer. */
const document = (body: Readonly<Record<string, object>>, required: readonly string[], answers: object): OpenApiDocument => ({
  paths: {
    '/plans': {
      post: {
        requestBody: { content: { 'application/json': { schema: { type: 'object', properties: body, required } } } },
        responses: answers as Record<string, never>,
      },
    },
  },
  components: {
    schemas: { Plan: { type: 'object', properties: { id: { type: 'string' }, state: { enum: ['new', 'done'] } }, required: ['id'] } },
  },
})

const PLAN = { 200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Plan' } } } }, 404: {} }
const BODY = { for: { type: 'string' }, note: { type: 'string' } }
const released = { api: apiSurface(document(BODY, ['for'], PLAN)) }
const after = (changed: OpenApiDocument) => breaches('1.0.0', released, { api: apiSurface(changed) })

describe('a change of an API', () => {
  test('that adds an optional member of a request, an answer and a value of a list breaks nothing', () => {
    const grown = document({ ...BODY, more: { type: 'string' } }, ['for'], { ...PLAN, 409: {} })
    const schemas = {
      Plan: { type: 'object', properties: { id: { type: 'string' }, state: { enum: ['new', 'done', 'old'] } }, required: ['id'] },
    }
    expect(after({ ...grown, components: { schemas } })).toEqual([])
  })

  test.each<[string, OpenApiDocument, string]>([
    ['an answer is removed', document(BODY, ['for'], { 200: PLAN[200] }), 'POST /plans 404 is gone'],
    [
      'a new member of a request is required',
      document({ ...BODY, more: { type: 'string' } }, ['for', 'more'], PLAN),
      'request POST /plans application/json.more is new, and required',
    ],
    [
      'a known member of a request is required',
      document(BODY, ['for', 'note'], PLAN),
      'request POST /plans application/json.note is required now',
    ],
    ['a member of a request is removed', document({ for: BODY.for }, ['for'], PLAN), 'request POST /plans application/json.note is gone'],
    [
      'a member has another type',
      document({ ...BODY, for: { type: 'number' } }, ['for'], PLAN),
      'request POST /plans application/json.for was string required, and is number required',
    ],
    [
      'a member of an answer may be absent',
      {
        ...document(BODY, ['for'], PLAN),
        components: { schemas: { Plan: { type: 'object', properties: { id: { type: 'string' }, state: { enum: ['new', 'done'] } } } } },
      },
      'answer Plan.id may be absent now',
    ],
    [
      'a value of a list is removed',
      {
        ...document(BODY, ['for'], PLAN),
        components: {
          schemas: { Plan: { type: 'object', properties: { id: { type: 'string' }, state: { enum: ['new'] } }, required: ['id'] } },
        },
      },
      'answer Plan.state = done is gone',
    ],
  ])('is named when %s', (_, changed, sentence) => {
    expect(after(changed)).toEqual([`api of 1.0.0: ${sentence}`])
  })
})
