/**
 * Runs a daemon under a constant load for hours, and judges memory, write-ahead log and event loop at the end. docs/bench.md explains it.
 *
 *   npm run soak                               eight hours
 *   npm run soak -- --minutes 75 --rate 400    an hour and a quarter
 */
import { UsageError } from './bench/options.ts'
import { parseSoakOptions, SOAK_USAGE } from './bench/soak/soak-options.ts'
import { runSoak } from './bench/soak/soak-run.ts'

const EX_USAGE = 64
const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(args: readonly string[]): Promise<number> {
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort(new Error(`ended by ${name}`)))
  try {
    const options = parseSoakOptions(args)
    if (options === 'help') {
      say(SOAK_USAGE.trimEnd())
      return 0
    }
    return (await runSoak(options, { signal: interrupted.signal, say })) ? 0 : 1
  } catch (error) {
    const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error
    process.stderr.write(`soak: ${reason instanceof Error ? reason.message : String(reason)}\n`)
    return error instanceof UsageError ? EX_USAGE : 1
  }
}

process.exitCode = await main(process.argv.slice(2))
