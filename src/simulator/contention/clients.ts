/** Clients of the contention simulator by name. Every retry policy can be used as a client too. */
import { PolicyError } from '../../backoff/policy.ts'
import { isPolicyName } from '../../backoff/policy-text.ts'
import { mulberry32 } from '../../system/random.ts'
import { type Client, type ContentionResult, runContention } from './contention.ts'
import {
  decorrelatedJitter,
  equalJitter,
  fixedWait,
  fullJitter,
  noJitter,
  policyWait,
  RetryingClient,
  TokenBucketClient,
  type Wait,
} from './retrying-clients.ts'
import { CongestionClient, constantOne, FixedWindowClient, perConcurrency, PostfixClient } from './window-clients.ts'

interface ClientSettings {
  readonly client: string
  readonly seed: number
  readonly requests: number
  /** Number of connections that the server serves concurrently. */
  readonly maxBusy: number
  /** Wait of the client `fixed`, in microseconds; default 1 s. */
  readonly wait?: number
  /** Part of the requests in flight that the windows of `reno` and `tahoe` keep after a refusal; default 0.5. */
  readonly decrease?: number
  readonly maxAttempts?: number
  readonly onProgress?: (done: number) => void
}

interface NamedClient {
  readonly about: string
  make(settings: ClientSettings): Client
}

const retrying = (about: string, wait: Wait): NamedClient => ({
  about,
  make: ({ requests, seed }) => new RetryingClient(requests, wait, mulberry32(seed)),
})

/** Postfix's feedback with a window that starts at 20, like the simulated TCP window, and has no limit. */
const postfix = { feedback: perConcurrency, initial: 20, limit: Infinity, halfStep: false }

export const CLIENTS: Readonly<Record<string, NamedClient>> = {
  backoff: retrying('doubling from 50 ms to 30 s, full jitter', fullJitter),
  'backoff-none': retrying('doubling, no jitter', noJitter),
  'backoff-equal': retrying('doubling, equal jitter', equalJitter),
  'backoff-decorrelated': retrying('decorrelated jitter', decorrelatedJitter),
  'token-bucket': {
    about: 'full jitter, with a token bucket for retries',
    make: ({ requests, seed }) => new TokenBucketClient(requests, mulberry32(seed)),
  },
  fixed: {
    about: 'always the same wait (--wait, 1 s)',
    make: ({ requests, seed, wait = 1_000_000 }) => new RetryingClient(requests, fixedWait(wait), mulberry32(seed)),
  },
  tahoe: { about: "TCP Tahoe's window", make: ({ requests, decrease = 0.5 }) => new CongestionClient(requests, 'tahoe', decrease) },
  reno: { about: "TCP Reno's window", make: ({ requests, decrease = 0.5 }) => new CongestionClient(requests, 'reno', decrease) },
  postfix: {
    about: "Postfix's window, feedback 1/N, as in its SCHEDULER_README",
    make: ({ requests }) => new PostfixClient(requests, postfix),
  },
  'postfix-program': {
    about: "the same with the rounding of Postfix's program",
    make: ({ requests }) => new PostfixClient(requests, { ...postfix, halfStep: true }),
  },
  'postfix-constant': {
    about: "Postfix's window, feedback 1",
    make: ({ requests }) => new PostfixClient(requests, { ...postfix, feedback: constantOne }),
  },
  oracle: { about: 'a fixed window of the right size', make: ({ requests, maxBusy }) => new FixedWindowClient(requests, maxBusy) },
}

/** Attempts after which a run ends as collapsed. */
const mostAttempts = (requests: number): number => Math.max(400_000, 200 * requests)

export function runClient(settings: ClientSettings): ContentionResult {
  const { requests, maxBusy, maxAttempts = mostAttempts(requests), onProgress } = settings
  return runContention({ requests, maxBusy, maxAttempts, ...(onProgress === undefined ? {} : { onProgress }) }, clientFor(settings))
}

function clientFor(settings: ClientSettings): Client {
  const named = Object.hasOwn(CLIENTS, settings.client) ? CLIENTS[settings.client] : undefined
  if (named !== undefined) return named.make(settings)
  if (!isPolicyName(settings.client))
    throw new PolicyError(`unknown client "${settings.client}"; the clients are ${Object.keys(CLIENTS).join(', ')}, and every retry policy`)
  return new RetryingClient(settings.requests, policyWait(settings.client), mulberry32(settings.seed))
}
