/** docs/backoff.md from the table of policies: names, formulas, parameters and first waits as the code has them. */
import { attempts } from '../src/backoff/attempts.ts'
import { EXIM_DEFAULT } from '../src/backoff/exim.ts'
import { FORMULAS, SCHEDULES } from '../src/backoff/policies.ts'
import type { Formula } from '../src/backoff/policy.ts'
import { formatDuration } from '../src/system/duration.ts'

const INTRODUCTION = `# Retry policies

<!-- Written by scripts/docs.ts from src/backoff; do not edit. -->

A retry policy computes the wait after a failed attempt. The same policies serve in four places:

- \`retry_backoff\` in the [configuration](configuration.md), for the relay or for one destination;
- \`deferd retry\`, which repeats a command ([below](#for-a-command));
- \`--policy\` of \`deferd simulate schedule\` and \`--client\` of \`deferd simulate contention\`
  ([how to choose](choosing-retry-settings.md));
- the package entry \`deferd/backoff\`, for other programs.

## Writing a policy

\`NAME\` or \`NAME(parameters)\`. Parameters are in order or by name: \`thain(5m, 2, 4h)\`, \`thain(M=4h)\`. Times are \`300s\`, \`5m\`,
\`1h30m\`, \`2d\`, or a number of seconds. Two policies take a list instead: \`table(5m, 10m, 1h)\` and
\`exim(${EXIM_DEFAULT})\`.

## In a queue

- \`minimal_backoff_time\` and \`maximal_backoff_time\` take the place of the parameters marked _base_ and _cap_, unless the text of
  the policy sets them, and every wait is clamped between the two. Policies marked _literal_ are not clamped.
- A policy that ends repeats its last wait: only \`maximal_queue_lifetime\` ends mail. Limits by elapsed time are off.
- Waits are whole milliseconds. \`retry_jitter\` then spreads a wait w over [w, w·(1+j)].

## As a library

\`\`\`ts
import { attempts, compileRetryPolicy, nextWait } from 'deferd/backoff'

// When does Exim's default try? Milliseconds since the first attempt.
for (const at of attempts('exim', { until: '4d or 10 tries' })) console.log(at)

// The wait of a queue after the third failure, 15 minutes after arrival.
const policy = compileRetryPolicy({ retry_backoff: 'doubling', minimal: 300_000, maximal: 4_000_000 })
nextWait(policy, { step: 3, age: 900_000, previousWait: 600_000, draw: Math.random }) // 1200000
\`\`\`

Everything is pure: random numbers come from a seed (\`attempts\`) or from the caller (\`draw\`). Texts that are not a policy or a
limit throw a \`PolicyError\` with the reason.

\`retry\` calls a function until it succeeds:

\`\`\`ts
import { retry } from 'deferd/backoff'

const report = await retry(({ attempt, signal }) => fetchReport({ signal }), {
  policy: 'thain(T=1s,M=1m)',
  until: '1h or 20 tries', // required for a policy that never ends
  signal: AbortSignal.timeout(7_200_000), // ends the wait and the attempt under way
  onAttempt: ({ attempt, error, wait }) => console.log(attempt, error, wait), // wait in ms; null when no attempt follows
})
\`\`\`

It resolves with the value of the function, and rejects with the error of the last attempt when the policy or the limit ends; with a \`PolicyError\` when no
attempt has ended by then, and with the reason of \`signal\` when that aborts. A wait counts from the end of an attempt. The signal that the function gets aborts at the limit too: what it
does after that is ignored. \`clock\` takes the timers of a test, with \`monotonic()\` and \`after(delay, action)\` in milliseconds.

## For a command

\`\`\`sh
deferd retry --for 1h -- curl -fsS https://api.example.com/report -o report.json
deferd retry --attempts 5 --policy 'fixed(10s)' -- pg_isready
deferd retry --for 1h --any-of x.example,y.example,z.example -- rsync -a data/ {}:/srv/data/
\`\`\`

This is \`try for 1 hour … end\` and \`forany server in X, Y, Z … end\` of D. Thain's fault tolerant shell. Each round of \`--any-of\` runs the command for each server until one
succeeds: \`{}\` in the arguments and \`$DEFERD_SERVER\` name it. The default policy, \`thain(T=1s,F=2,M=1h)\`, is that of the shell. \`--plan\` prints the times and runs nothing.
Exit codes and signals: [commands](commands.md#deferd-retry).

## Policies

Waits of a policy outside a queue, with its defaults. Those of random policies are drawn with seed 1.

| policy | wait | first waits | source |
| --- | --- | --- | --- |
`

const FIRST_WAITS = 5

const cell = (text: string): string => text.replaceAll('|', '\\|')

/** A wait for readers: three significant digits below a second, else whole seconds in the largest exact unit. */
function readable(wait: number): string {
  if (wait === 0) return '0'
  if (wait < 1000) return `${Number(wait.toPrecision(3))}ms`
  return wait % 1000 === 0 ? formatDuration(wait) : `${Number((wait / 1000).toPrecision(3))}s`
}

function firstWaits(policy: string): string {
  const times = [...attempts(policy, { until: `${FIRST_WAITS + 2} tries` })]
  const waits = times.slice(1).map((at, i) => readable(at - (times[i] ?? 0)))
  return waits.length > FIRST_WAITS ? `${waits.slice(0, FIRST_WAITS).join(', ')} …` : waits.join(', ')
}

function* parameterRows(name: string, { parameters, base, cap, endsByTime = [], literal }: Formula): Generator<string> {
  for (const [key, { unit, default: value, about }] of Object.entries(parameters)) {
    const roles = [
      ...(key === base && literal !== true ? ['base'] : []),
      ...(key === cap && literal !== true ? ['cap'] : []),
      ...(endsByTime.includes(key) ? ['off'] : []),
      ...(literal === true ? ['literal'] : []),
    ]
    yield `| \`${name}\` | \`${key}\` | ${unit === 'time' ? readable(value) : value} | ${roles.join(', ')} | ${cell(about)} |`
  }
}

/** docs/backoff.md as it must be now. */
export function backoffPage(): string {
  const formulas: readonly (readonly [string, Formula])[] = Object.entries(FORMULAS)
  const policies = [
    ...formulas.map(([name, { about, source }]) => `| \`${name}\` | ${cell(about)} | ${firstWaits(name)} | ${cell(source)} |`),
    '| `table` | the n-th wait of the list; the last one repeats; _literal_ | as listed | schedules of ZoneMTA, Exchange, RFC 5321 |',
    `| \`exim\` | Exim's rules F, G and H; _literal_ | ${firstWaits('exim')} | Exim, retry.c |`,
  ]
  const schedules = Object.entries(SCHEDULES).map(([name, text]) => `| \`${name}\` | \`${text}\` |`)
  return `${INTRODUCTION}${policies.join('\n')}

## Parameters

Alone, a policy has these defaults. The column "in a queue" shows the role that a parameter has there.

| policy | parameter | default | in a queue | meaning |
| --- | --- | --- | --- | --- |
${formulas.flatMap(([name, formula]) => [...parameterRows(name, formula)]).join('\n')}

## Names of fixed schedules

| policy | is |
| --- | --- |
${schedules.join('\n')}
`
}
