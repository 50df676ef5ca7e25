/**
 * Writes the pages of docs/ that are made from the source: docs/configuration.md and docs/commands.md.
 */
import { writeFileSync } from 'node:fs'
import { commandsPage } from '../src/cli/manual.ts'
import { processShell } from '../src/cli/process-shell.ts'
import { buildProgram } from '../src/cli/program.ts'
import { configurationPage } from '../src/config/documentation.ts'

const docs = new URL('../docs/', import.meta.url)
writeFileSync(new URL('configuration.md', docs), configurationPage())
writeFileSync(new URL('commands.md', docs), commandsPage(await buildProgram(processShell())))
