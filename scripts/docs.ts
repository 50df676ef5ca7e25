/**
 * Writes the generated files: configuration.md, commands.md, backoff.md, events.md, api.md, monitoring.md, performance.md and
 * images/queue-show.svg in docs/, the man pages in man/, the completions in contrib/completions/, the examples of answers in
 * src/api/examples/response-examples.ts and src/lab/examples/lab-examples.ts, and the doc comments of published types in
 * src/config/values/relay-parameters.ts and
 * src/testkit/remote/rule-keys.ts.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { apiPage, documentedRoutes } from '../src/api/api-pages.ts'
import { commandsPage } from '../src/cli/commands-page.ts'
import { EMPTY_TALLY } from '../src/store/counts/queue-tally.ts'
import { processShell } from '../src/cli/process-shell.ts'
import { buildProgram } from '../src/cli/program.ts'
import { configurationPage } from '../src/config/documentation.ts'
import { apiExamples } from '../test/support/api-tour.ts'
import { labExamples } from '../test/support/lab-tour.ts'
import { realClock } from '../test/support/real-clock.ts'
import { examplesFile } from '../test/support/response-examples.ts'
import { openMetrics } from '../src/telemetry/metrics/metrics.ts'
import { monitoringPage } from '../src/telemetry/metrics/monitoring-page.ts'
import { VERSION } from '../src/system/version.ts'
import { generatedCommandFiles } from './command-files.ts'
import { backoffPage } from './backoff-page.ts'
import { eventsPage } from './events-page.ts'
import { currentPage } from './performance/publish-files.ts'
import { relayParameters, withRuleComments } from './documented-types.ts'
import { queueShowPicture } from './screenshot.ts'

const docs = new URL('../docs/', import.meta.url)
writeFileSync(new URL('configuration.md', docs), configurationPage())
writeFileSync(new URL('commands.md', docs), commandsPage(await buildProgram(processShell())))
for (const [path, text] of generatedCommandFiles(await buildProgram(processShell()), VERSION)) {
  const file = new URL(`../${path}`, import.meta.url)
  mkdirSync(new URL('.', file), { recursive: true })
  writeFileSync(file, text)
}
writeFileSync(new URL('backoff.md', docs), backoffPage())
writeFileSync(new URL('events.md', docs), eventsPage())
writeFileSync(new URL('api.md', docs), apiPage(documentedRoutes()))
const { texts } = openMetrics({
  clock: realClock,
  tally: async () => EMPTY_TALLY,
  destinations: () => [],
})
writeFileSync(new URL('monitoring.md', docs), monitoringPage(texts))
writeFileSync(new URL('performance.md', docs), currentPage())
mkdirSync(new URL('images/', docs), { recursive: true })
writeFileSync(new URL('images/queue-show.svg', docs), await queueShowPicture())

const sources = new URL('../src/', import.meta.url)
const ruleKeys = new URL('testkit/remote/rule-keys.ts', sources)
writeFileSync(new URL('config/values/relay-parameters.ts', sources), relayParameters())
writeFileSync(ruleKeys, withRuleComments(readFileSync(ruleKeys, 'utf8')))

for (const [file, name, tour, examples] of [
  ['api/examples/response-examples.ts', 'RESPONSE_EXAMPLES', 'test/support/api-tour.ts', await apiExamples()],
  ['lab/examples/lab-examples.ts', 'LAB_EXAMPLES', 'test/support/lab-tour.ts', await labExamples()],
] as const)
  writeFileSync(new URL(file, sources), examplesFile(name, tour, examples))

// The formatter pads the cells of tables, and chooses the quotes of texts.
const formatter = new URL('../node_modules/.bin/oxfmt', import.meta.url)
execFileSync(fileURLToPath(formatter), ['docs', 'src/api/examples', 'src/lab/examples'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  stdio: 'inherit',
})
