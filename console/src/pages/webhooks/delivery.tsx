import { PageHeader } from '../../ui/page.tsx'

export default function DeliveryPage() {
  return <PageHeader title="Delivery" />
}
