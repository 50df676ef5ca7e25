/** Examples of answers in the OpenAPI document of the lab. */
import { expect, test } from 'vitest'
import { exampleKey } from '../../src/api/openapi.ts'
import { LAB_EXAMPLES } from '../../src/lab/examples/lab-examples.ts'
import { LAB_BASE } from '../../src/lab/lab-route.ts'
import { labRoutes } from '../../src/lab/lab-server.ts'
import { TestLab } from '../support/lab-client.ts'
import { LAB_WITHOUT_EXAMPLE, labExamples } from '../support/lab-tour.ts'

test('the examples are answers of a lab (node scripts/docs.ts)', async () => {
  const kept = Object.entries(LAB_EXAMPLES).map(([operation, text]) => [operation, JSON.parse(text) as object] as const)
  expect(Object.fromEntries(kept)).toEqual(Object.fromEntries(await labExamples()))
})

test('each operation has an example, or a reason to have none', async () => {
  await using lab = await TestLab.open()
  const operations = labRoutes(lab.lab).map((route) => exampleKey(route, LAB_BASE))
  expect([...Object.keys(LAB_EXAMPLES), ...Object.keys(LAB_WITHOUT_EXAMPLE)].toSorted()).toEqual(operations.toSorted())
  const { json } = await lab.ask('GET', '/openapi.json')
  expect(JSON.stringify(json.paths[`${LAB_BASE}/worlds/{world}/asserts`])).toContain('"example":{"holds":true,"message":null}')
})
