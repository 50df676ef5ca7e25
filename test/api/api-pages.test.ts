import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { allProblems, apiPage, documentedRoutes } from '../../src/api/api-pages.ts'

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

test('problems have one status and page each', () => {
  const problems = allProblems(routes)
  expect(problems.length).toBeGreaterThan(20)
  for (const { slug, about } of problems) {
    expect(slug).toMatch(/^[a-z-]+$/)
    expect(about).toMatch(/[.:]$|\.$/)
  }
})
