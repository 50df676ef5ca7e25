/** Plots that can be read without colours: looks of series, labels of logarithmic axes, shaded outages. */
import { describe, expect, test } from 'vitest'
import { lookOf } from '../../../src/simulator/pages/plot-look.ts'
import { datasets, legend, logTicks, shade } from '../../../src/simulator/pages/plot-parts.ts'
import type { DrawnPlot } from '../../../src/simulator/pages/plot.ts'
import { scenarioPage } from '../../../src/simulator/pages/scenario-page.ts'
import { outagesOf } from '../../../src/simulator/scenario/outages.ts'
import { readScenario } from '../../../src/simulator/scenario/scenario-file.ts'
import { runScenario } from '../../../src/simulator/scenario/scenario-run.ts'
import { HOUR } from '../../../src/system/clock.ts'

/** The palette of Okabe and Ito without yellow and black. */
const PALETTE = ['#0072b2', '#009e73', '#56b4e9', '#cc79a7', '#d55e00', '#e69f00']

describe('looks', () => {
  const looks = Array.from({ length: 35 }, (_, i) => lookOf(i))

  test('have the colours of Okabe and Ito, and that of the text', () => {
    expect(new Set(looks.map(({ colour }) => colour))).toEqual(new Set([...PALETTE, null]))
  })

  test('of 35 lines differ, and those of the first five also without colours', () => {
    expect(new Set(looks.map(({ colour, dash }) => `${colour} ${dash.join()}`)).size).toBe(35)
    expect(new Set(looks.slice(0, 5).map(({ dash }) => dash.join())).size).toBe(5)
    expect(new Set(looks.slice(0, 6).map(({ mark }) => mark)).size).toBe(6)
  })

  test('are in the line and in the legend; marks instead of dashes in a plot of points', () => {
    const axis = { title: '', scale: 'linear' } as const
    const plot: DrawnPlot = {
      title: '',
      about: '',
      kind: 'line',
      x: axis,
      y: axis,
      series: [0, 1].map((i) => ({ name: `line ${i}`, points: [[1, 2]], look: lookOf(i) })),
    }
    const dashes = { borderDash: [7, 3], pointStyle: 'triangle', borderColor: '#d55e00' }
    expect(datasets(plot, 'black')[1]).toMatchObject(dashes)
    expect(legend(plot, 'black', () => true)[1]).toMatchObject({
      lineDash: [7, 3],
      pointStyle: 'line',
      strokeStyle: '#d55e00',
      hidden: false,
    })
    const points = { ...plot, kind: 'scatter' } as const
    expect(datasets(points, 'black')[1]).toMatchObject({ ...dashes, borderDash: [] })
    expect(legend(points, 'black', () => false)[1]).toMatchObject({ lineDash: [], pointStyle: 'triangle', hidden: true })
  })
})

describe('labels of a logarithmic axis', () => {
  test('are 1, 2 and 5 where there is room, else decades', () => {
    expect(logTicks(0.05, 200, 900, 40)).toEqual([0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200])
    expect(logTicks(0.05, 200, 300, 40)).toEqual([0.1, 1, 10, 100])
    expect(logTicks(1, 1e6, 120, 40)).toEqual([1, 100, 10_000, 1_000_000])
  })

  test('are the ends of a range without two such values', () => {
    expect(logTicks(3, 4, 900, 40)).toEqual([3, 4])
    expect(logTicks(7, 7, 900, 40)).toEqual([7, 7])
  })

  test('are never nearer than the gap', () => {
    for (let pixels = 100; pixels <= 1000; pixels += 30) {
      for (const [min, max] of [
        [0.01, 130],
        [1, 400_000],
        [0.2, 7],
        [1, 1e12],
      ] as const) {
        const at = logTicks(min, max, pixels, 40).map((tick) => (Math.log10(tick / min) / Math.log10(max / min)) * pixels)
        for (const [i, position] of at.slice(1).entries()) expect(position - (at[i] ?? 0)).toBeGreaterThanOrEqual(39.9)
      }
    }
  })
})

describe('outages', () => {
  const MAIL = 'duration = "5h"\n[mail]\nmessages = 10\nto = "far.example"\nover = "4h"\n'
  const scenarioOf = (rules: string) => readScenario(`${MAIL}${rules}`, 'x.toml')
  const outages = (rules: string) => outagesOf(scenarioOf(rules).script.rules, 5 * HOUR)

  test('are the times in which a rule makes hosts unreachable, up to the end', () => {
    expect(outages('[rule.down]\ndomain = "far.example"\nconnect = "refused"\nfrom = "1h"\nuntil = "2h"\n')).toEqual([
      { label: 'down at far.example', from: HOUR, until: 2 * HOUR },
    ])
    expect(outages('[rule.lost]\nat = "dns"\ndns = "servfail"\nfrom = "4h"\n')).toEqual([
      { label: 'lost', from: 4 * HOUR, until: 5 * HOUR },
    ])
    expect(outages('[rule.busy]\nat = "greeting"\nreply = "421 4.3.2 busy"\nuntil = "9h"\n')).toEqual([
      { label: 'busy', from: 0, until: 5 * HOUR },
    ])
  })

  test('are not rules without times, later rules, or replies to commands', () => {
    expect(outages('[rule.always]\nconnect = "refused"\n')).toEqual([])
    expect(outages('[rule.later]\nconnect = "refused"\nfrom = "6h"\n')).toEqual([])
    expect(outages('[rule.full]\nat = "rcpt"\nreply = "452 4.2.2 full"\nuntil = "2h"\n')).toEqual([])
  })

  test('are shaded in every plot of the page', async () => {
    const result = await runScenario(scenarioOf('[rule.down]\nconnect = "refused"\nfrom = "1h"\nuntil = "2h"\n'), { seed: 1 })
    const { plots } = scenarioPage(result, 'x', { headings: [], rows: [] }, 'x')
    for (const { shaded } of plots) expect(shaded).toEqual([{ label: 'down', from: 1, to: 2 }])
  })

  test('are drawn within the area of the chart', () => {
    const drawn: unknown[] = []
    const ctx = {
      fillStyle: '',
      globalAlpha: 1,
      save: () => undefined,
      restore: () => undefined,
      fillRect: (...box: readonly number[]) => void drawn.push(box),
      fillText: (text: string) => void drawn.push(text),
    }
    const chart = {
      ctx,
      chartArea: { left: 50, right: 150, top: 10, bottom: 90 },
      scales: { x: { getPixelForValue: (x: number) => x * 100 } },
    }
    shade(
      chart,
      [
        { label: 'down', from: 0, to: 1 },
        { label: 'lost', from: 1.2, to: 9 },
      ],
      'black',
    )
    expect(drawn).toEqual([[50, 10, 50, 80], 'down', [120, 10, 30, 80], 'lost'])
  })
})
