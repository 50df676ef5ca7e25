/** Entry of the process: runs the command line and exits with its code. */
import { basename } from 'node:path'
import { processShell } from './process-shell.ts'
import { failure, run } from './program.ts'
import { EX } from './shell/exit.ts'

const shell = processShell()

// The exit code of a process that ends before its command, which is a bug.
process.exitCode = EX.software
void run(shell, process.argv.slice(2), basename(process.argv[1] ?? '', '.js'))
  .catch((error: unknown) => failure(shell, error))
  .then((code) => void (process.exitCode = code))
