#include "launch/cloud/cloud_survey.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "io/http_client.h"
#include "launch/agent/own_address.h"
#include "launch/cloud/cloud_prices.h"
#include "launch/cloud/subnet_fit.h"

namespace pscloud {
namespace {

// What machines run if nobody says: Debian 12 of Debian's own account; with GPUs, Amazon's image that has their driver
// and a container engine that knows them.
constexpr const char* kDebianOwner = "136693071363";
constexpr const char* kGpuImages = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)*";
// Says from which address it was asked.
constexpr const char* kAddressService = "https://checkip.amazonaws.com/";

std::string own_architecture() {
  utsname name{};
  ::uname(&name);
  return std::string_view(name.machine) == "aarch64" ? "arm64" : name.machine;
}

int integer_of(const XmlElement& element, std::string_view child) {
  int number = 0;
  parse_number(element.text_of(child), 0, 1 << 30, number);
  return number;
}

const XmlElement& child_or_nothing(const XmlElement& element, std::string_view name) {
  static const XmlElement kNothing;
  const XmlElement* child = element.child(name);
  return child == nullptr ? kNothing : *child;
}

Result<InstanceType> ask_type(AwsApi& api, const std::string& name) {
  const Ec2Answer answer = TRY(api.ask("DescribeInstanceTypes", Ec2Form().set("InstanceType.1", name)));
  const XmlElement& set = child_or_nothing(answer.body, "instanceTypeSet");
  if (answer.refused == "InvalidInstanceType" || (answer.refused.empty() && set.children.empty())) {
    return invalid("there is no type of machine '{}' in {}", name, api.region());
  }
  if (!answer.refused.empty()) return answer.error;
  const XmlElement& item = set.children.front();
  InstanceType type{.name = name,
                    .vcpus = integer_of(child_or_nothing(item, "vCpuInfo"), "defaultVCpus"),
                    .memory_mib = integer_of(child_or_nothing(item, "memoryInfo"), "sizeInMiB"),
                    .architectures = {}};
  for (const XmlElement& gpu : child_or_nothing(child_or_nothing(item, "gpuInfo"), "gpus").children) {
    type.gpus += integer_of(gpu, "count");
  }
  const XmlElement& processor = child_or_nothing(item, "processorInfo");
  for (const XmlElement& each : child_or_nothing(processor, "supportedArchitectures").children) {
    type.architectures.push_back(each.text);
  }
  const std::string own = own_architecture();
  if (!type.architectures.empty() && std::ranges::find(type.architectures, own) == type.architectures.end()) {
    return invalid("{} is a machine of the kind {}, and this program is for {}", name,
                   fmt::join(type.architectures, ", "), own);
  }
  return type;
}

// The zones that have all types, by name.
Result<std::vector<std::string>> find_zones(AwsApi& api, const std::vector<MachineGroup>& groups) {
  std::set<std::string> zones;
  bool first = true;
  std::set<std::string> types;
  for (const MachineGroup& group : groups) types.insert(group.type);
  for (const std::string& type : types) {
    const auto items =
        TRY(api.list("DescribeInstanceTypeOfferings", "instanceTypeOfferingSet",
                     Ec2Form().set("LocationType", "availability-zone").filter("instance-type", {type})));
    std::set<std::string> having;
    for (const XmlElement& item : items) {
      const std::string zone = item.text_of("location");
      if (first || zones.contains(zone)) having.insert(zone);
    }
    zones = std::move(having);
    first = false;
  }
  if (zones.empty()) return invalid("no zone of {} has {}", api.region(), fmt::join(types, " and "));
  return std::vector<std::string>(zones.begin(), zones.end());
}

Result<> survey_network(AwsApi& api, const CloudRequest& request, CloudPlan& plan) {
  if (!request.subnet.empty()) {
    const auto subnets = TRY(api.list("DescribeSubnets", "subnetSet", Ec2Form().filter("subnet-id", {request.subnet})));
    if (subnets.empty()) return invalid("there is no subnet {} in {}", request.subnet, api.region());
    plan.subnet = request.subnet;
    plan.subnet_cidr = subnets.front().text_of("cidrBlock");
    plan.vpc = subnets.front().text_of("vpcId");
    plan.zone = subnets.front().text_of("availabilityZone");
    if (!request.zone.empty() && request.zone != plan.zone) {
      return invalid("the subnet {} is in {}, not in {}", plan.subnet, plan.zone, request.zone);
    }
    return {};
  }
  const auto vpcs = TRY(api.list("DescribeVpcs", "vpcSet", Ec2Form().filter("is-default", {"true"})));
  if (vpcs.empty()) {
    return invalid("your account has no default network (VPC) in {}: name a subnet with --subnet", api.region());
  }
  plan.vpc = vpcs.front().text_of("vpcId");
  plan.vpc_cidr = vpcs.front().text_of("cidrBlock");
  plan.subnet_cidr = TRY(free_subnet(api, plan));
  return {};
}

// A subnet that nobody removes with the cluster: of the network's own ones, that in the cluster's zone if there is one.
Result<std::string> find_controller_subnet(AwsApi& api, const CloudPlan& plan) {
  if (!plan.subnet.empty()) return plan.subnet;
  const auto subnets = TRY(api.list("DescribeSubnets", "subnetSet", Ec2Form().filter("vpc-id", {plan.vpc})));
  std::string found;
  for (const XmlElement& subnet : subnets) {
    if (subnet.text_of("defaultForAz") != "true") continue;
    if (found.empty() || subnet.text_of("availabilityZone") == plan.zone) found = subnet.text_of("subnetId");
  }
  if (!found.empty()) return found;
  return invalid(
      "{} has no default subnet for the controller, which cannot be in one that is removed with the cluster: "
      "`aws ec2 create-default-subnet` makes one, or name one of yours with --subnet",
      plan.vpc);
}

// Unless somebody says otherwise.
std::vector<KeptDisk> kept_disks(const XmlElement& image) {
  std::vector<KeptDisk> disks;
  for (const XmlElement& item : child_or_nothing(image, "blockDeviceMapping").children) {
    const XmlElement& disk = child_or_nothing(item, "ebs");
    if (disk.text_of("deleteOnTermination") != "false") continue;
    disks.push_back({item.text_of("deviceName"), integer_of(disk, "volumeSize")});
  }
  return disks;
}

Result<> survey_image(AwsApi& api, const CloudRequest& request, CloudPlan& plan) {
  const bool gpus = std::ranges::any_of(plan.groups, [](const auto& group) { return group.what.gpus > 0; });
  const std::string debian = fmt::format("debian-12-{}-*", own_architecture() == "arm64" ? "arm64" : "amd64");
  const std::string wanted = gpus ? kGpuImages : debian;
  const std::string owner = gpus ? "amazon" : kDebianOwner;
  Ec2Form form;
  if (!request.image.empty()) {
    form.filter("image-id", {request.image});
  } else {
    form.set("Owner.1", owner).filter("name", {wanted}).filter("state", {"available"});
  }
  const auto images = TRY(api.list("DescribeImages", "imagesSet", form));
  if (images.empty() && !request.image.empty())
    return invalid("there is no image {} in {}", request.image, api.region());
  if (images.empty()) {
    return invalid("no image '{}' of {} is found in {}{}: name one with --image, and who logs in with --user", wanted,
                   gpus ? "Amazon's" : "Debian's account " + owner, api.region(),
                   gpus ? ", which has the driver of GPUs" : "");
  }
  const auto newest =
      std::ranges::max_element(images, {}, [](const XmlElement& image) { return image.text_of("creationDate"); });
  plan.image = newest->text_of("imageId");
  plan.image_name = newest->text_of("name");
  plan.kept_disks = kept_disks(*newest);
  const std::string kind = newest->text_of("architecture");
  if (!kind.empty() && kind != own_architecture()) {
    return invalid("the image {} is for {}, and this program for {}", plan.image, kind, own_architecture());
  }
  plan.user = request.user.empty() ? login_user(plan.image_name) : request.user;
  const auto in_names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  if (!std::ranges::all_of(plan.user, in_names)) return invalid("--user '{}' is no name of a user", plan.user);
  if (plan.user.empty())
    return invalid("which user does the image {} ({}) log in? say it with --user", plan.image, plan.image_name);
  return {};
}

}  // namespace

Result<std::string> find_ssh_from(const std::string& wanted, const CloudPlan& plan) {
  if (!wanted.empty()) {
    const AddressBlock block = TRY(parse_address_block(wanted).at("--ssh-from"));
    if (block.prefix == 0) return invalid("--ssh-from {}: not the whole world; name your own addresses", block.text());
    return block.text();
  }
  std::string address;
  if (plan.private_addresses) {
    address = address_towards(plan.subnet_cidr.substr(0, plan.subnet_cidr.find('/')));
  } else {
    HttpClient http({.tries = 2, .total_timeout = std::chrono::seconds(10)});
    const auto answer = http.send({.url = kAddressService});
    if (answer && answer->status == 200) address = answer->body.substr(0, answer->body.find_first_of("\r\n "));
  }
  const auto block = parse_address_block(address + "/32");
  if (block) return block->text();
  return invalid("it cannot be found out at which address this machine is seen: say it with --ssh-from 203.0.113.7/32");
}

namespace {

std::string own_name() {
  const char* user = std::getenv("USER");
  return fmt::format("{}@{}", user == nullptr ? "somebody" : user, own_host_name());
}

}  // namespace

std::string login_user(const std::string& image_name) {
  constexpr std::pair<const char*, const char*> kUsers[] = {
      {"ubuntu", "ubuntu"}, {"Ubuntu", "ubuntu"}, {"debian", "admin"},  {"al2023", "ec2-user"},
      {"amzn", "ec2-user"}, {"RHEL", "ec2-user"}, {"Fedora", "fedora"}, {"Rocky", "rocky"}};
  for (const auto& [word, user] : kUsers) {
    if (image_name.find(word) != std::string::npos) return user;
  }
  return "";
}

Result<std::string> free_subnet(AwsApi& api, const CloudPlan& plan) {
  const AddressBlock network = TRY(parse_address_block(plan.vpc_cidr).at(plan.vpc));
  const auto subnets = TRY(api.list("DescribeSubnets", "subnetSet", Ec2Form().filter("vpc-id", {plan.vpc})));
  std::vector<AddressBlock> taken;
  for (const XmlElement& subnet : subnets) {
    taken.push_back(TRY(parse_address_block(subnet.text_of("cidrBlock")).at(subnet.text_of("subnetId"))));
  }
  return TRY(fit_subnet(network, taken, plan.machines())).text();
}

std::string new_cloud_id() { return fmt::format("{:016x}", Random::from_system().next()); }

Result<CloudPlan> survey_cloud(AwsApi& api, const CloudRequest& request, const std::string& id) {
  const std::vector<MachineGroup> groups = TRY(machine_groups(request));
  CloudPlan plan;
  plan.name = request.name;
  plan.id = id;
  plan.region = api.region();
  plan.endpoint = api.endpoint();
  plan.owner = own_name();
  plan.instance_profile = request.instance_profile;
  plan.controller_profile = request.controller_profile;
  plan.max_price = request.max_price;
  plan.setup = request.setup;
  plan.private_addresses = request.private_addresses;
  plan.placement = request.placement;
  plan.docker = request.docker || request.swarm;
  plan.swarm = request.swarm;
  plan.on_demand_fallback = request.on_demand_fallback;
  plan.idle_s = request.idle_s;
  const auto now = unix_seconds_now();
  plan.expires_unix = now + request.life_s;
  for (const MachineGroup& group : groups) {
    CloudPlan::Group planned;
    static_cast<MachineGroup&>(planned) = group;
    planned.what = TRY(ask_type(api, group.type));
    plan.groups.push_back(std::move(planned));
  }
  TRY(survey_network(api, request, plan));
  if (plan.zone.empty()) plan.zone = request.zone;
  if (plan.zone.empty()) {
    plan.other_zones = TRY(find_zones(api, groups));
    plan.zone = plan.other_zones.front();
    plan.other_zones.erase(plan.other_zones.begin());
  }
  if (request.controller) plan.controller_subnet = TRY(find_controller_subnet(api, plan));
  TRY(survey_image(api, request, plan));
  plan.ssh_from = TRY(find_ssh_from(request.ssh_from, plan));
  for (CloudPlan::Group& group : plan.groups) group.price = ask_price(api, group.type, group.spot, plan.zone);
  plan.quotas = ask_quotas(api, plan.groups);
  return plan;
}

}  // namespace pscloud
