/**
 * The tiers of the tests. `npm test` runs the fast one: about two minutes on two idle cores, with neither root nor packages of a
 * distribution. `npm run test:process` has the rest of what CI runs: tests that need a process, a database, a browser or Postfix, that kill, or
 * that take long. `npm run test:long` has the full forms (test/long).
 */

/** Globs of the process tier. Every other `*.test.ts` is of the fast tier. */
export const PROCESS_TIER: readonly string[] = [
  // Real processes, PostgreSQL, browsers and Postfix.
  'test/process/**/*.test.ts',
  'test/interop/**/*.test.ts',
  'test/packages/**/*.test.ts',
  'test/lab/*.test.ts',
  'test/store/postgres/**/*.test.ts',
  'test/conformance/{on-disk,postgres}.test.ts',
  'test/daemon/node/taken-over-at-start.test.ts',
  'test/import/shared-import.test.ts',
  'test/page/{browser,connection,counting,focus,hostile-mail,incident,later-mail,layout,links,resend-pages,single-layouts,suppression-pages,tasks,views}.test.ts',
  'test/daemon/{admin,dkim-keys,reload,sendmail}.test.ts',
  'test/telemetry/contrib.test.ts',
  'test/cli/commands/{import,operation,webhook,page-and-token}.test.ts',
  'test/cli/{broken-configurations,hostile-text,remote}.test.ts',
  'test/cli/oauth/{oauth-list,oauth-login,token-command}.test.ts',
  'test/docs/{newcomers,site,testkit-examples}.test.ts',
  'test/{public-types,embedded-relay}.test.ts',
  // Many seeds, many states, long spans of virtual time.
  'test/simulation/{fair-shares,states,rewriting,simulation,tls-policies}.test.ts',
  'test/simulation/nodes/nodes.test.ts',
  'test/calendar/random-expressions.test.ts',
  'test/mutants/**/*.test.ts',
  'test/types/**/*.test.ts',
  'test/upgrade/{delivered,surface,upgrade}.test.ts',
  'test/outputs/*.test.ts',
  'test/release/release.test.ts',
  'test/simulator/{rate-limits,retry-guide}.test.ts',
  'test/bounce/dsn-properties.test.ts',
  'test/cli/shown-times.test.ts',
  'test/simulator/pages/pages-browser.test.ts',
  'test/simulator/contention/contention.test.ts',
  'test/cli/commands/simulate-run.test.ts',
  'test/cli/render/simulator-tables.test.ts',
  'test/cli/queue-client/parallel-listing.test.ts',
  'test/smtpd/{segmentation,session-fuzz,smuggling}.test.ts',
  'test/delivery/smtp/{cut-sessions,reply-fuzz,segmentation}.test.ts',
  'test/sessions/failure-storm.test.ts',
  'test/testkit/remote/any-script.test.ts',
  'test/testkit/record/recorder.test.ts',
  'test/dkim/generated-mail.test.ts',
  'test/queue/{memory,queue-move,subscription-move}.test.ts',
  'test/store/sqlite/{claim-cost,damaged-copies,durability,foreign-schema,power-cut,power-cut-replay,random-schedules}.test.ts',
  'test/store/memory/random-schedules.test.ts',
  'test/stories/{access-tokens,bulk-backlog,concurrency-experiment,features-on-both-stores,many-recipients,message-rate,notices-over-smtp,oauth-of-two-nodes,on-call,on-call-night,outage-recovery,plan-matches-queue,quota-worlds,quotas,relay-chains,six-days,slow-destination,suppression-worlds}.test.ts',
  'test/stories/{tls-policies-over-a-month,tls-reports-of-a-day}.test.ts',
]
