/** The corpus of outputs is complete, and equal in each run. */
import { beforeAll, expect, test } from 'vitest'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { LISTED_COMMANDS } from '../../src/cli/remote/command-routes.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import { matchRoute } from '../../src/http/route-table.ts'
import { ApiWorld } from '../support/api-world.ts'
import { commandOf, LINES } from '../support/command-lines.ts'
import { PageScreens } from '../support/page-screens.ts'
import { PATHS } from './api-outputs.ts'
import { collectOutputs } from './outputs.ts'
import { SCREENS } from './page-outputs.ts'

let outputs: ReadonlyMap<string, string>
beforeAll(async () => {
  outputs = await collectOutputs()
})

test('there are at least 400, and each command has one', () => {
  expect(outputs.size).toBeGreaterThan(400)
  const shown = new Set([...LINES].filter((line) => outputs.has(`commands/admin/${line}`)).map(commandOf))
  expect(LISTED_COMMANDS.filter((words) => !shown.has(words) && !outputs.has(`commands/help-80/${words} --help`))).toEqual([])
})

test('each route of the API that reads has one', () => {
  const routes = documentedRoutes().filter(({ method }) => method === 'GET')
  const asked = new Set(
    PATHS.flatMap((path) => {
      const match = matchRoute(routes, 'GET', `${BASE}${path.replace(/\?.*/, '')}`)
      return match.kind === 'found' ? [match.route.path] : []
    }),
  )
  const endless = /\/stream$/
  expect(routes.map(({ path }) => path).filter((path) => !asked.has(path) && !endless.test(path))).toEqual([])
})

test('each screen of the page has one', async () => {
  const world = await ApiWorld.open('memory')
  const { routes } = new PageScreens(world).page
  await world.close()
  const shown = routes.filter(({ method, role }) => method === 'GET' && role !== 'anyone')
  const asked = new Set(
    SCREENS.flatMap((path) => {
      const match = matchRoute(shown, 'GET', new URL(path, 'http://page.example/').pathname)
      return match.kind === 'found' ? [match.route.path] : []
    }),
  )
  expect(shown.map(({ path }) => path).filter((path) => !asked.has(path))).toEqual([])
})

test('another run has the same', async () => {
  const again = await collectOutputs()
  expect([...again.keys()]).toEqual([...outputs.keys()])
  const differing = [...outputs].filter(([name, text]) => again.get(name) !== text)
  expect(differing.map(([name]) => name)).toEqual([])
})
