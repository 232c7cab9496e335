import { PageHeader } from '../../ui/page.tsx'

export default function UsageandlimitsPage() {
  return <PageHeader title="Usage and limits" />
}
