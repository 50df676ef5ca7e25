/** Entry of the process: runs the command line and exits with its code. */
import { basename } from 'node:path'
import { processShell } from './process-shell.ts'
import { failure, run } from './program.ts'

const shell = processShell()

try {
  process.exitCode = await run(shell, process.argv.slice(2), basename(process.argv[1] ?? '', '.js'))
} catch (error) {
  process.exitCode = await failure(shell, error)
}
