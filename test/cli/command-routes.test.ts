/** Each command names the routes of the API that it uses from another machine, or the reason why it cannot. */
import { expect, test } from 'vitest'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { actingIn, LISTED_COMMANDS, routesOf, whyHere, wordsOf } from '../../src/cli/remote/command-routes.ts'
import { BASE } from '../../src/http/command-protocol.ts'

test('each command has a row, and each row is a command', async () => {
  const commands = actingIn(await buildProgram(processShell())).map(wordsOf)
  expect(commands.toSorted()).toEqual(LISTED_COMMANDS.toSorted())
})

test('each route of a command is one of the API, and each reason the end of a sentence', () => {
  const routes = new Set(documentedRoutes().map(({ method, path }) => `${method} ${path.slice(BASE.length)}`))
  for (const words of LISTED_COMMANDS) {
    expect(
      routesOf(words).filter((route) => !routes.has(route)),
      words,
    ).toEqual([])
    expect(whyHere(words) ?? 'it uses the API', words).toMatch(/^(?:it|its) [^.]+$/)
  }
})
