/**
 * Where the process begins: runs the command line and ends with its exit code.
 */
import { processShell } from './process-shell.ts'
import { failure, run } from './program.ts'

const shell = processShell()

try {
  process.exitCode = await run(shell, process.argv.slice(2))
} catch (error) {
  process.exitCode = await failure(shell, error)
}
