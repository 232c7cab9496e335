import { PageHeader } from '../../ui/page.tsx'

export default function MetricsPage() {
  return <PageHeader title="Metrics" />
}
