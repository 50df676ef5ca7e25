import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { allProblems, apiPage, documentedRoutes } from '../../src/api/api-pages.ts'
import { jsonSchema } from '../../src/api/openapi.ts'
import { validator } from '../support/api-server.ts'

const routes = documentedRoutes()
const unpadded = (text: string): string => text.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')

test('docs/api.md describes the routes (node scripts/docs.ts)', () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  expect(unpadded(page).replaceAll(/```json.*?```/gs, '')).toBe(unpadded(apiPage(routes)).replaceAll(/```json.*?```/gs, ''))
})

test.each(routes.filter(({ about }) => about.example !== undefined).map((one) => [`${one.method} ${one.path}`, one] as const))(
  'the example of %s has the shape of the body',
  (_, { body, about }) => {
    const shape = body?.shape ?? about.bodies?.['application/json']
    expect(shape?.safeParse(about.example).error).toBeUndefined()
  },
)

/** Members of a schema by their names, also those within members. */
function membersOf(schema: unknown): readonly (readonly [string, object])[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, object>> }
  return [...Object.entries(properties), ...Object.values(schema).flatMap(membersOf)]
}

test('every span in a request may be written as 2h', () => {
  const spans = routes.flatMap(({ method, path, about, body }) =>
    [about.query, body?.shape ?? about.bodies?.['application/json'] ?? undefined]
      .flatMap((shape) => (shape === undefined ? [] : membersOf(jsonSchema(shape))))
      .filter(([name, { description = '' }]: readonly [string, { readonly description?: string }]) =>
        /\b(?:2h|7d)\b|seconds(?! since)|(?:_time|_lifetime)$/.test(`${description} ${name}`.replace(/100\/min.*2h/, '')),
      )
      .map(([name, schema]) => ({ member: `${method} ${path} ${name}`, schema })),
  )
  expect(spans.length).toBeGreaterThan(20)
  const refused = spans.filter(({ schema }) => !validator().validate(schema, '2h') && !validator().validate(schema, ['2h']))
  expect(refused.map(({ member }) => member)).toEqual([])
})

test('problems have one status and page each', () => {
  const problems = allProblems(routes)
  expect(problems.length).toBeGreaterThan(20)
  for (const { slug, about } of problems) {
    expect(slug).toMatch(/^[a-z-]+$/)
    expect(about).toMatch(/[.:]$|\.$/)
  }
})
