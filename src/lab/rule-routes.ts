/** Routes of the remote servers of a world: rules of the script language, and the verbs of domains. */
import { z } from 'zod'
import { json, type ApiRoute } from '../api/route/api-route.ts'
import { HTTP_PROBLEMS, Problem, type InvalidPart } from '../http/problem-details.ts'
import type { ListedRule } from '../testkit/remote/remote-network.ts'
import { readRule } from '../testkit/remote/rule-reader.ts'
import type { Rule } from '../testkit/remote/rule.ts'
import type { Lab } from './lab.ts'
import { invalidMembers } from './lab-problems.ts'
import { optionalJson, worldRoute } from './lab-route.ts'
import type { LabWorld } from './lab-world.ts'
import { VERBS } from './remote-verbs.ts'

const ruleShape = z
  .object({
    id: z.int(),
    name: z.string(),
    rule: z.record(z.string(), z.unknown()).describe('the keys of docs/faults.md, as they were written'),
    used: z.int().describe('occasions on which the rule acted'),
  })
  .meta({ id: 'Rule' })

const ruleJson = ({ id, rule: { name, written }, used }: ListedRule): z.output<typeof ruleShape> => ({
  id,
  name,
  rule: { ...written },
  used,
})

const rulesShape = z.object({ rules: z.array(ruleShape) })

const addedRules = (world: LabWorld, add: () => void): readonly ListedRule[] => {
  const before = new Set(world.world.remote.rules.map(({ id }) => id))
  add()
  return world.world.remote.rules.filter(({ id }) => !before.has(id))
}

const ruleText = z.record(z.string(), z.unknown()).describe('a rule with the keys of docs/faults.md, and optionally a name')

const newRules = z.union([z.strictObject({ rules: z.array(ruleText).min(1).max(1_000) }), ruleText])

/** Reads rules. Throws Problem with all mistakes. */
function rulesOf(written: readonly (readonly [pointer: string, text: Readonly<Record<string, unknown>>])[]): readonly Rule[] {
  const errors: InvalidPart[] = []
  const rules: Rule[] = []
  for (const [pointer, { name = 'rule', ...text }] of written) {
    if (typeof name !== 'string') errors.push({ pointer: `${pointer}/name`, detail: 'expected a text' })
    const read = readRule(String(name), text)
    if ('rule' in read) rules.push(read.rule)
    else errors.push(...read.mistakes.map((one) => ({ pointer: one.key === null ? pointer : `${pointer}/${one.key}`, detail: one.text })))
  }
  if (errors.length > 0) throw invalidMembers(errors)
  return rules
}

/** Removals of rules. */
const removalRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'DELETE',
    path: '/rules/:id',
    summary: 'Remove a rule with its state',
    answers: { 200: { about: 'the rules that are left', shape: rulesShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters }) =>
      world.inOrder(() => {
        const { remote } = world.world
        const id = Number(parameters['id'])
        if (!remote.rules.some((rule) => rule.id === id))
          throw new Problem(HTTP_PROBLEMS.unknown, `there is no rule ${parameters['id']}: GET the rules`)
        remote.removeRules((_rule, one) => one === id)
        return json({ rules: remote.rules.map(ruleJson) })
      }),
  }),
  worldRoute(lab, {
    method: 'DELETE',
    path: '/rules',
    summary: 'Remove the rules of a domain with their state',
    query: z.strictObject({ domain: z.string().min(1).max(255).describe('the domain, as the rules have it') }),
    answers: { 200: { about: 'the rules that are left', shape: rulesShape } },
    handler: (world, { query }) =>
      world.inOrder(() => {
        world.world.destination(query.domain).recovers()
        return json({ rules: world.world.remote.rules.map(ruleJson) })
      }),
  }),
]

/** The verbs of remote domains. */
const verbRoutes = (lab: Lab): readonly ApiRoute[] =>
  Object.entries(VERBS).map(([name, { shape, call }]) =>
    worldRoute(lab, {
      method: 'POST',
      path: `/destinations/:domain/${name}`,
      summary: `The verb ${name} of a remote domain`,
      about: 'As the method of `world.destination(DOMAIN)` in docs/testkit.md. Other paths of verbs are unknown.',
      body: optionalJson(shape),
      answers: { 201: { about: 'the rules that were added', shape: rulesShape } },
      handler: (world, { parameters, body }) =>
        world.inOrder(() => {
          const rules = addedRules(world, () => call(world.world.destination(parameters['domain'] ?? ''), body))
          return { kind: 'json', status: 201, value: { rules: rules.map(ruleJson) } }
        }),
    }),
  )

export const ruleRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'POST',
    path: '/rules',
    summary: 'Add rules before all others',
    about: 'The first rule that matches acts. The body is one rule of docs/faults.md, or several: `{"rules": [...]}`.',
    body: optionalJson(newRules),
    example: { at: 'rcpt', domain: 'slow.example', reply: '451 4.3.0 try again later', first: 2 },
    answers: {
      201: [
        { about: 'the rule', shape: ruleShape },
        { about: 'the rules', shape: rulesShape },
      ],
    },
    handler: (world, { body }) =>
      world.inOrder(() => {
        const isList = Array.isArray(body['rules'])
        const written = isList
          ? (body['rules'] as readonly Readonly<Record<string, unknown>>[]).map((text, n) => [`/rules/${n}`, text] as const)
          : [['', body] as const]
        const rules = addedRules(world, () => world.world.remote.addRules(...rulesOf(written))).map(ruleJson)
        return { kind: 'json', status: 201, value: isList ? { rules } : rules[0] }
      }),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/rules',
    summary: 'The rules, in the order in which they are tried',
    answers: { 200: { about: 'the rules', shape: rulesShape } },
    handler: (world) => world.inOrder(() => json({ rules: world.world.remote.rules.map(ruleJson) })),
  }),
  ...removalRoutes(lab),
  ...verbRoutes(lab),
]
